// SPDX-License-Identifier: Apache-2.0

package mtls

import "context"

// Look has the files read now.
func (i *Identity) Look(ctx context.Context) { i.reloadFiles(ctx) }

// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"context"
	"log/slog"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// warnOfCallers logs a warning if the setting FNR_CALLERS restricts the callers but mutual TLS is not configured.
// The setting then has no effect, because the program cannot identify callers.
func warnOfCallers(ctx context.Context, log *slog.Logger, identity *mtls.Identity) {
	if identity == nil && config.IsSet("Callers") {
		log.WarnContext(ctx, "setting has no effect; any caller is answered",
			"setting", "FNR_CALLERS", "missing", "FNR_TLS_DIRECTORY")
	}
}

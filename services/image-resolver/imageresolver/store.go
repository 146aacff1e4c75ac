// SPDX-License-Identifier: Apache-2.0

package imageresolver

import (
	"log/slog"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

type (
	// StoreConfig configures a store of images. [OpenStore] and [OpenLocal] set Group, Source and Log.
	StoreConfig = imagestore.Config
	// Store contains the root file systems of images, by digest.
	Store = imagestore.Store
	// StoredImage is an image in a store.
	StoredImage = imagestore.Record
	// ImageName is the latest resolution of an image's name.
	ImageName = imagestore.Name
)

// OpenStore opens a store whose images are pulled with the credentials, authorities and mirrors of r. The members of
// group may also read the images. Zero means no group. The caller must close the store before the tasks of r stop.
func OpenStore(cfg StoreConfig, r *Resolver, group int, log *slog.Logger) (*Store, error) {
	cfg.Source = imagestore.Registries{Client: r.registry}
	cfg.Group = group
	cfg.Log = log
	return imagestore.Open(cfg)
}

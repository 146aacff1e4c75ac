// SPDX-License-Identifier: Apache-2.0

package imageresolver

import (
	"log/slog"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

type (
	// StoreConfig configures a store of images. [OpenStore] and [OpenLocal] overwrite its fields Group, Source and Log.
	StoreConfig = imagestore.Config
	// Store contains the root file systems of images on disk, for programs that run images without pods.
	Store = imagestore.Store
	// StoredImage is an image in a store.
	StoredImage = imagestore.Record
	// ImageName is an image name with the digest to which it was last resolved.
	ImageName = imagestore.Name
)

// OpenStore opens a store of images on disk. It pulls images with the credentials, certificates and mirrors of r. If
// group is not zero, this Unix group may read the images. Close the store before the tasks of r stop.
func OpenStore(cfg StoreConfig, r *Resolver, group int, log *slog.Logger) (*Store, error) {
	cfg.Source = imagestore.Registries{Client: r.registry}
	cfg.Group = group
	cfg.Log = log
	return imagestore.Open(cfg)
}

package evidence

import (
	"path"

	"berth/coordinator/model"
)

// inPool is a source as a volume, if it is a file in the folder of one of the node's pools: it can be named both ways.
func inPool(source model.DiskSource, facts *model.NodeFacts) model.DiskSource {
	if source.Path == "" {
		return source
	}
	for _, pool := range facts.Pools {
		if pool.Path != "" && path.Dir(source.Path) == path.Clean(pool.Path) {
			return model.DiskSource{Pool: pool.Name, Volume: path.Base(source.Path)}
		}
	}
	return model.DiskSource{Path: path.Clean(source.Path)}
}

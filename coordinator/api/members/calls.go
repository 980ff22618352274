package members

import "berth/coordinator/api/answer"

// Calls are the calls about coordinators and what enrols: tokens, certificates, members and snapshots.
type Calls struct {
	*answer.Source
	tries tries
}

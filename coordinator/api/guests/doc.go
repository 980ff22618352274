// Package guests has the calls about what a guest runs with: what people have changed of it beside Berth, and what becomes of that.
package guests

import "berth/coordinator/api/answer"

// DeviceCalls are those about disks and network interfaces.
type DeviceCalls struct{ *answer.Source }

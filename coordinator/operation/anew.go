package operation

// targetAnew tells that the host of the operation's target has booted since the operation began, or is off.
func (o *Operation) targetAnew(seen Observation) bool {
	return seen.Anew || o.TargetBoot != "" && seen.Boot != "" && seen.Boot != o.TargetBoot
}

// lostWithTarget takes note that the VM's new host was lost before it could say that the VM runs there.
func (t *transition) lostWithTarget() { t.VM.Lose(t.Operation.TargetName, t.at, t.at) }

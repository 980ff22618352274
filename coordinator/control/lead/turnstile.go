package lead

// turnstile lets one through at a time. Unlike a mutex, it can be waited for in a select.
type turnstile chan struct{}

func newTurnstile() turnstile { return make(turnstile, 1) }

// Lock waits for the turn.
func (t turnstile) Lock() { t <- struct{}{} }

// Unlock ends the turn.
func (t turnstile) Unlock() { <-t }

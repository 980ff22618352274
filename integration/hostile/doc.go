// Package hostile is a node whose host somebody has taken over: it has that node's certificate and says whatever it likes, as fast as it
// is let. Tests measure beside it what the other nodes still do, with simulated agents (integration/bench), and here on a lab, in which it
// takes the place of one of real agents.
package hostile

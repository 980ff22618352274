// Package console drives the console with a real Chromium, against three real coordinators with simulated nodes behind them. What a page
// promises is checked where people meet it: in what a browser shows, what a key reaches, and what a button has changed in the cluster.
package console

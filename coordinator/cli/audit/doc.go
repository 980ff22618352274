// Package audit is the verb audit, and what others show of the history of the past.
package audit

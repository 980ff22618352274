// Package key is the noun key: it sets, lists and explains the keys that steer placement.
package key

// Package keyform reads keys from flags, and writes them as tables, for every noun that has keys.
package keyform

// Package resource is the nouns of what the estate declares, one for each kind of its table: the table says which flags a
// noun has and what they mean. Kinds with verbs of their own (image import, disk grow, policy copy) have a file here.
package resource

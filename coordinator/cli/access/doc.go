// Package access is the commands by which a person gets at a cluster: login, context and token.
package access

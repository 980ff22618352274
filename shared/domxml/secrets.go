package domxml

import "regexp"

// password is the attribute of a graphics element with which one gets in.
var password = regexp.MustCompile(`\spasswd\s*=\s*("[^"]*"|'[^']*')`)

// WithoutSecrets is a domain document to be shown: it has no passwords, as what libvirt shows of a running domain.
func WithoutSecrets(text string) string { return password.ReplaceAllString(text, "") }

package console

import "html/template"

// escaped is what a template has made, as another one takes it in: it is not escaped once more.
func escaped(content []byte) template.HTML {
	return template.HTML(content) //nolint:gosec // it is for contents of pages alone
}

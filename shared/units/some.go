package units

import (
	"fmt"
	"strings"
)

// Some joins the first few of several texts, at most most of them, and counts the others: "a, b, and 3 more".
func Some(texts []string, most int, separator string) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}

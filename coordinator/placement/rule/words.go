package rule

import "strconv"

// Count is "1 node" or "3 nodes".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Command scale measures what grows with the size of a site, at several sizes. First the CPU of one coordinator for a decision's view, a
// start, the pages that people read, and an idle second: state, inventory, control and API are the real ones, in this process; the log is
// applied at once and agents answer at once, so that the figures are the coordinator's own. Then a whole site of processes, see package
// storms. It prints a table with the slope of each figure between two sizes: 0 means that it does not grow, 1 that it grows like the site.
package main

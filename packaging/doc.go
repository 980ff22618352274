// Package packaging tests the packages: that they can be built twice with the same bytes, hold what they should and
// nothing else, and pass the checks of the distributions. packaging/build builds them, integration/acceptance installs
// them.
package packaging

// Package clitest is what tests of commands share: coordinators that answer what a test tells them to, canned answers, and a
// site that runs commands against them.
package clitest

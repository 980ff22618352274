// Package crew runs simulated agents in processes of their own, so that thousands of them, whoever starts VMs on them and the
// coordinators that they call share no limit of open files, and a coordinator's connections are between processes as on a real site.
// A program that uses it calls Child first of all: the processes are the program itself, started again.
package crew

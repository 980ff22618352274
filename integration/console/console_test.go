package console

import "testing"

// The parts stand in this order: the last ones change the site for good.
func TestTheConsoleInABrowser(t *testing.T) {
	s := raise(t)
	s.peopled()
	s.propose()
	s.sub("every screen shows what the cluster has", screensShow)
	s.sub("hostile texts stay text", hostileTextsStayText)
	s.sub("all screens look right", screensLookRight)
	s.sub("weeks line up", weeksLineUp)
	s.sub("the keyboard reaches all", theKeyboardReachesAll)
	s.sub("each action does what it says", actionsAct)
	s.sub("open pages follow the cluster", pagesFollow)
	s.sub("hidden pages rest", hiddenPagesRest)
	s.sub("many nodes are a picture", manyNodesAreAPicture)
	s.sub("sessions end", sessionsEnd)
	s.sub("the leader dies", theLeaderDies)
}

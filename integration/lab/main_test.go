package lab

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// ownerVariable makes the test binary raise a lab, print its directory and wait to be killed.
const ownerVariable = "BERTH_LAB_TEST_OWNER"

func TestMain(m *testing.M) {
	Child()
	if os.Getenv(ownerVariable) != "" {
		l, err := Up(context.Background(), Options{Hosts: 1})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if _, err := l.Hosts[0].startGuest(context.Background(), "orphan", ""); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(l.Dir)
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

package daemon

import "berth/coordinator/webhook"

// webhookConfig is what the sending of what happens stands on: this member's own history, and the log for how far it is.
func webhookConfig(d *daemon) webhook.Config {
	return webhook.Config{
		Cluster: d.who.ClusterID, Self: d.who.Name, State: d.store.Snapshot, Past: d.history, Keys: d.home.keepSealKeys,
		Propose: d.consensus.Propose, NewID: newID, Log: d.log.Named("webhook"),
	}
}

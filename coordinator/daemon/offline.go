package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"berth/coordinator/consensus"
	"berth/coordinator/history"
	"berth/coordinator/model"
	"berth/coordinator/seal"
	"berth/coordinator/state"
)

// ErrDeclined says that what cannot be taken back was not confirmed.
var ErrDeclined = errors.New("nothing was changed")

// stoppedMember is what the verbs work on that need this machine's coordinator to be stopped.
func stoppedMember(path string) (Config, place, identity, error) {
	c, err := LoadConfig(path)
	if err != nil {
		return c, place{}, identity{}, err
	}
	home := place{c.DataDir}
	who, err := home.identity()
	return c, home, who, err
}

// mending adds to what is wrong with a store what to do about it.
func mending(err error, home place, who identity) error {
	switch {
	case errors.Is(err, consensus.ErrInUse):
		return fmt.Errorf("%w: stop it first with 'systemctl stop berth-coordinator'", err)
	case errors.Is(err, consensus.ErrDamaged):
		return fmt.Errorf("%w: while more than half of the coordinators run, take this one out with 'berth coordinator delete %s' there, "+
			"empty %s, "+
			"and let it join again; when none has a whole store, go on from a backup with 'berth coordinator recover --from FILE'", err,
			who.Name, home.dir)
	}
	return err
}

func configFlag(command *cobra.Command, path *string) {
	command.Flags().StringVar(path, "config", DefaultConfigPath, "the coordinator's configuration")
}

func verifyCommand() *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "verify",
		Short: "Read everything that this machine's stopped coordinator has stored",
		Long: "Read everything that this machine's stopped coordinator has stored: every page, entry and snapshot with its sum. The log is\n" +
			"replayed into a scratch state, whose index and hash are told: at the same index all coordinators have the same hash.\n" +
			"Nothing is changed.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, home, who, err := stoppedMember(path)
			if err != nil {
				return err
			}
			found, err := consensus.Inspect(home.raft(), hclog.NewNullLogger())
			if err != nil {
				return mending(err, home, who)
			}
			if owner := found.State.Meta(state.MetaClusterID); owner != "" && owner != who.ClusterID {
				return fmt.Errorf(
					"%w: %s has the state of cluster %s, coordinator %s belongs to %s", ErrDamaged, home.raft(), owner, who.Name, who.ClusterID,
				)
			}
			tellInspection(command.OutOrStdout(), who, found)
			return nil
		},
	}
	configFlag(command, &path)
	return command
}

func tellInspection(w io.Writer, who identity, found consensus.Inspection) {
	fmt.Fprintf(w, "the store of coordinator %s of cluster %s is whole\n", who.Name, who.ClusterID)
	entries := "empty"
	if found.Last > 0 {
		entries = fmt.Sprintf("entries %d to %d with %d commands", found.First, found.Last, found.Commands)
	}
	fmt.Fprintf(w, "  log        %s, %v, term %d\n", entries, found.LogSize, found.Term)
	fmt.Fprintf(w, "  snapshots  %s\n", indexes(found.Snapshots))
	fmt.Fprintf(w, "  members    %s\n", memberList(found))
	tellState(w, found.State)
}

func indexes(snapshots []uint64) string {
	if len(snapshots) == 0 {
		return "none yet"
	}
	texts := make([]string, len(snapshots))
	for i, index := range snapshots {
		texts[i] = fmt.Sprint(index)
	}
	return "at entry " + strings.Join(texts, ", ")
}

func memberList(found consensus.Inspection) string {
	if len(found.Members) == 0 {
		return "none: it was not taken in yet"
	}
	texts := make([]string, len(found.Members))
	for i, server := range found.Members {
		name := server.ID
		if record, known := found.State.Member(server.ID); known {
			name = record.Name
		}
		if texts[i] = name + " at " + server.Address; !server.Voter {
			texts[i] += " (without a vote)"
		}
	}
	return strings.Join(texts, ", ")
}

func tellState(w io.Writer, x *state.Snapshot) {
	fmt.Fprintf(w, "  state      index %d, feature level %d\n", x.Index(), x.FeatureLevel())
	fmt.Fprintf(w, "  hash       %s\n", x.Hash())
	fmt.Fprintf(w, "  records    nodes %d, VMs %d, operations %d running of %d, members %d\n",
		len(x.Nodes()), len(x.VMs()), len(x.LiveOperations()), len(x.Operations()), len(x.Members()))
	if reason := x.Meta(state.MetaQuarantine); reason != "" {
		fmt.Fprintf(w, "  quarantine %s\n", reason)
	}
}

func compactCommand() *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "compact",
		Short: "Give back the room that the log of this machine's stopped coordinator no longer needs",
		Long: "Give back the room that the log of this machine's stopped coordinator no longer needs. The file of the log grows with what\n" +
			"is kept and never shrinks by itself. A new file is written next to the old one and replaces it whole or not at all.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, home, who, err := stoppedMember(path)
			if err != nil {
				return err
			}
			before, after, err := consensus.Compact(home.raft())
			if err != nil {
				return mending(err, home, who)
			}
			fmt.Fprintf(command.OutOrStdout(), "the log of coordinator %s takes %v, it took %v\n", who.Name, after, before)
			return nil
		},
	}
	configFlag(command, &path)
	return command
}

func recoverCommand() *cobra.Command {
	var path, backup string
	var yes, unproved bool
	command := &cobra.Command{
		Use:   "recover",
		Short: "Go on with this machine's stopped coordinator alone, when a majority is gone for good",
		Long: "Go on with this machine's stopped coordinator alone, when a majority of the coordinators is gone for good. What the others\n" +
			"had decided without this one is lost. No VM is started, stopped or moved until all nodes have reported what they run.\n" +
			"The other coordinators are forgotten: those that still exist must not be started again before their data directories\n" +
			"are empty and they have joined anew.\n\n" +
			"With --from the state is that of a backup, for when no coordinator has a store that can be read: what was decided since\n" +
			"the backup is lost, too. The machine needs its configuration, cluster.json and tls directory; a store that is there is\n" +
			"moved aside. A backup whose seal is not that of the cluster is refused. Releases before 0.7 made none: with --unproved\n" +
			"it is taken without, and whoever could write the file may have put anything into it.",
		Example: "  berth coordinator recover\n" +
			"  berth coordinator recover --from /var/lib/berth/coordinator/backups/20261121T120000Z-1042.snapshot",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, home, who, err := stoppedMember(path)
			if err != nil {
				return err
			}
			if !yes {
				if err := confirmName(command, who.Name); err != nil {
					return err
				}
			}
			raft := raftConfig(home, who, c, hclog.NewNullLogger())
			raft.Fatal = func(error) {} // what fails here is returned as well
			if raft.Revoked, err = home.revoked(); err != nil {
				return err
			}
			if err := goOnAlone(command, raft, backup, unproved); err != nil {
				return mending(err, home, who)
			}
			who.Founders = nil // who is not in the state may have been revoked since, and forgotten
			found, err := consensus.Inspect(home.raft(), hclog.NewNullLogger())
			if err := errors.Join(home.saveIdentity(who), err); err != nil {
				return mending(err, home, who)
			}
			tellRecovery(command.OutOrStdout(), who, path, found.State)
			return nil
		},
	}
	configFlag(command, &path)
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	command.Flags().BoolVar(&unproved, "unproved", false, "take the backup also if nothing proves who wrote it")
	command.Flags().StringVar(&backup, "from", "", "backup `FILE` to take the state from, instead of the store")
	return command
}

// goOnAlone recovers the member from its store, or from a backup.
func goOnAlone(command *cobra.Command, raft consensus.Config, backup string, unproved bool) error {
	if backup == "" {
		return consensus.Recover(raft)
	}
	file, err := os.Open(backup)
	if err != nil {
		return err
	}
	defer file.Close()
	if unproved {
		fmt.Fprintln(command.ErrOrStderr(),
			"warning: a backup without a good seal may hold what anybody has written into it: look through it afterwards")
	}
	aside, err := consensus.Rebuild(raft, file, unproved)
	if errors.Is(err, seal.ErrUnsealed) || errors.Is(err, seal.ErrKey) {
		return fmt.Errorf("recover from %s: %w: take one that a coordinator of this cluster made, put its tls directory back, or, if you know "+
			"where this file has been, say --unproved", backup, err)
	}
	if err != nil {
		return fmt.Errorf("recover from %s: %w", backup, err)
	}
	// What it has is of the log that was replaced.
	if _, err := history.SetAside(place{filepath.Dir(raft.DataDir)}.history(), time.Now()); err != nil {
		return err
	}
	if aside != "" {
		fmt.Fprintf(command.OutOrStdout(), "the old store is in %s: remove it when everything is well\n", aside)
	}
	return nil
}

func tellRecovery(w io.Writer, who identity, path string, x *state.Snapshot) {
	fmt.Fprintf(w, "coordinator %s is the only one of cluster %s now\n", who.Name, who.ClusterID)
	login := ""
	if !slices.ContainsFunc(x.Identities(), func(i model.Identity) bool { return i.Kind == model.IdentityOperator && i.Live() }) {
		fmt.Fprintln(w, "its state has no operator on record: whoever was one may have been revoked since, so each needs a new token")
		login = "  berth coordinator login                 (makes an operator of this account, who can let the others in)\n" +
			"  berth token add --for operator          (one for each of them, who runs 'berth login' with it)\n"
	}
	fmt.Fprintf(w, "\nnext:\n  %s\n%s  berth status                            (which nodes the quarantine waits for)\n"+
		"  berth token add --for coordinator       (one for each new coordinator, which joins with it)\n", startLine(path), login)
}

// confirmName has the name of this member typed, which nobody does by mistake.
func confirmName(command *cobra.Command, name string) error {
	fmt.Fprintf(command.ErrOrStderr(), "Every other coordinator will be forgotten, and what they decided without this one is lost.\n"+
		"Type the name of this coordinator (%s) to go on: ", name)
	typed, err := bufio.NewReader(command.InOrStdin()).ReadString('\n')
	if err != nil && strings.TrimSpace(typed) == "" {
		return fmt.Errorf("%w: no answer: type the name, or repeat it with --yes", ErrDeclined)
	}
	if strings.TrimSpace(typed) != name {
		return fmt.Errorf("%w: %q is not the name of this coordinator", ErrDeclined, strings.TrimSpace(typed))
	}
	return nil
}

// SnapshotCommands are the verbs of 'berth coordinator snapshot' that work on files of this machine.
func SnapshotCommands() []*cobra.Command {
	return []*cobra.Command{listBackupsCommand(), verifyBackupCommand()}
}

func verifyBackupCommand() *cobra.Command {
	var path, plain string
	command := &cobra.Command{
		Use:   "verify FILE",
		Short: "Read a snapshot to its end and tell what it holds",
		Long: "Read a snapshot to its end, restore it into a scratch state and tell what it holds. No coordinator is asked. On the\n" +
			"machine of a coordinator of its cluster it is proved that the snapshot is as a coordinator wrote it; elsewhere only that\n" +
			"it is whole. --plain writes it once more without its seal, for releases before 0.7, which read no other.",
		Example: "  berth coordinator snapshot verify /var/lib/berth/coordinator/backups/20261121T120000Z-1042.snapshot",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			x, verdict, err := verifyBackup(args[0], path)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is whole: a snapshot of cluster %s\n", args[0], x.Meta(state.MetaClusterID))
			fmt.Fprintf(command.OutOrStdout(), "  seal       %s\n", verdict)
			tellState(command.OutOrStdout(), x)
			if plain == "" {
				return nil
			}
			file, err := os.OpenFile(plain, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("write the plain snapshot: %w", err)
			}
			return errors.Join(x.Save(file), file.Close())
		},
	}
	configFlag(command, &path)
	command.Flags().StringVar(&plain, "plain", "", "new `FILE` for the snapshot without its seal")
	return command
}

// verifyBackup loads a backup, and says what its seal proves on this machine.
func verifyBackup(path, config string) (*state.Snapshot, string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	keys, missing := keysHere(config)
	content, proved, err := seal.Open(file, keys, true)
	if err != nil {
		return nil, "", err
	}
	store, err := state.Load(content)
	if err != nil {
		return nil, "", err
	}
	sealed, isSealed := content.(*seal.Reader)
	switch {
	case proved:
		return store.Snapshot(), "good: it is as a coordinator of this cluster wrote it, with key " + sealed.KeyID(), nil
	case !isSealed:
		return store.Snapshot(), "none: nothing proves who wrote it; a restore takes it only with --unproved", nil
	case missing != nil:
		return store.Snapshot(), fmt.Sprintf("not proved: the keys of this machine's coordinator cannot be read: %v", missing), nil
	default:
		return store.Snapshot(), fmt.Sprintf("not proved: this machine's coordinator does not have key %s", sealed.KeyID()), nil
	}
}

// keysHere are the keys of this machine's coordinator.
func keysHere(path string) (seal.Keys, error) {
	c, err := LoadConfig(path)
	if err != nil {
		return nil, err
	}
	return place{c.DataDir}.sealKeys()
}

func listBackupsCommand() *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the backups that this machine's coordinator has made",
		Long: "List the backups that this machine's coordinator has made on its schedule, oldest first. Each was verified by a restore\n" +
			"into a scratch state. No coordinator is asked.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := LoadConfig(path)
			if err != nil {
				return err
			}
			files, err := listBackups(c.Backup.Directory)
			if err != nil {
				return err
			}
			if len(files) == 0 {
				return fmt.Errorf("%s has no backups", c.Backup.Directory)
			}
			for _, file := range files {
				fmt.Fprintf(command.OutOrStdout(), "%s  index %d  %v  %s\n", file.at.Format("2006-01-02 15:04:05Z"), file.index, file.size, file.path)
			}
			return nil
		},
	}
	configFlag(command, &path)
	return command
}

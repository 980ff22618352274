package main

import "slices"

// mutants are all planted bugs.
var mutants = slices.Concat(
	mainMutants,
	hostMutants,
	seedMutants,
	diskMutants,
	agentMutants,
	fenceMutants,
	strayMutants,
	lockMutants,
	driftMutants,
	desiredMutants,
	boundMutants,
	guardMutants,
	readinessMutants,
	liveMutants,
	intakeMutants,
	tokenMutants,
	identityMutants,
	consoleMutants,
	renewalMutants,
	preferMutants,
	designMutants,
	backupMutants,
	listMutants,
	packMutants,
	historyMutants,
	figureMutants,
	fewMutants,
	profileMutants,
	findingMutants,
)

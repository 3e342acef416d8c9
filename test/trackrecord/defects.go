package main

// defects are the defects of docent whose mends can be taken back, those of locks first.
var defects = []defect{
	{
		name: "late-create", found: besieged, commit: "c595577",
		text: "A create that lost its answer was applied after the client had come back to the same " +
			"server. Nothing owned its node, and the lock was dead until the client was closed.",
		folder: "framework", tests: "^TestNodeCreatedAfterARepeatedCreateIsDeleted$",
		says: "Not equal",
	},
	{
		name: "late-create-of-a-deleted-node", found: read, commit: "1387e77",
		text: "A late create at the path of a node that its owner had deleted made a node that nothing " +
			"owned.",
		folder: "framework", tests: "^TestNodeCreatedAfterItsOwnerHasDeletedItIsDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "metrics-end-the-search", found: attacked, commit: "2ab27ed",
		text: "Metrics that ended a goroutine of the client ended the search for such nodes for the " +
			"rest of the connection.",
		folder: "framework", tests: "^TestMetricsDoNotEndTheSearchForLateNodes$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "parents-in-turn", found: attacked, commit: "532cee4",
		text: "A parent whose list always lost the connection kept the client from the late nodes of all " +
			"other parents.",
		folder: "framework", tests: "^TestParentThatCannotBeListedKeepsNoOtherFromTheSearchForLateNodes$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "numbers-of-requests", found: besieged, commit: "ac9bb93",
		text: "A server took a transaction of the connection before for the answer to a request of the " +
			"present one. A lock node was left, or a caller got the path of another node.",
		folder: "framework/internal/conn", tests: "^TestNumbersOfRequestsGoOnAfterAReconnect$",
		says: `"1" is not greater than "1"`,
	},
	{
		name: "replies-of-other-operations", found: hostile, commit: "a4f66a2",
		text:   "A reply with the results of another operation made the program panic.",
		folder: "framework", tests: "^TestResultsOfAnotherOperationAreAnError$",
		says: "An error is expected but got nil",
	},
	{
		name: "transaction-without-results", found: read, commit: "8584efa",
		text: "A reply to a transaction without results counted as a success. What the transaction had " +
			"created was known to nothing.",
		folder: "framework", tests: "^TestMultiWithTooFewResultsHasAnUnknownOutcome$",
		says: "An error is expected but got nil",
	},
	{
		name: "answer-after-a-pause", found: attacked, commit: "b691b50",
		text: "After a pause of the client, the network or the ZooKeeper leader, the first answer moved " +
			"the deadline too far. Two holds were valid for seconds.",
		folder: "framework/internal/conn", tests: "^TestContactIsAtMostOneHeartbeatAfterTheLastReportBeforeAGap$",
		says: "Not equal",
	},
	{
		name: "shorter-timeout", found: attacked, commit: "b691b50",
		text: "A reconnect granted a shorter session timeout, and the deadline went on by the longer " +
			"one. Contexts ended seconds after the next hold had begun.",
		folder: "framework", tests: "^TestHoldEndsByTheShorterTimeout$",
		says: "the context is alive during another hold",
	},
	{
		name: "longer-timeout", found: read, commit: "d74e066",
		text: "A session was granted a longer timeout on a later connection, and the deadline went on by that one. " +
			"The servers went back to the shorter one, and two holds were valid at a time.",
		folder: "recipes/mutex", tests: "^TestHoldEndsByTheTimeoutOf",
		says: "the other hold is valid",
	},
	{
		name: "minimum-of-an-earlier-server", found: read, commit: "4610b64",
		text: "A server with long ticks had granted a session more than the client asked for, and another server " +
			"granted less. The session went on with a deadline that was too late, and two holds were valid at a time.",
		folder: "recipes/mutex", tests: "^TestHoldEndsByTheMinimumOfAnEarlierServer$",
		says: "the other hold is valid",
	},
	{
		name: "suspended-machine", found: attacked, commit: "b691b50",
		text: "After a suspension of the machine, contexts of lost holds lived for up to two thirds of " +
			"the session timeout.",
		folder: "framework", tests: "^TestContextsEndWithinASecondAfterASuspension$",
		says: `is not less than or equal to "1s"`,
	},
	{
		name: "deadline-without-suspensions", found: read, commit: "c95f5fa",
		text:   "`ValidUntil` did not count suspensions, so a program passed on a time that was too late.",
		folder: "framework", tests: "^TestSuspensionsMakeTheDeadlineEarlier$",
		says: "Not equal",
	},
	{
		name: "heartbeats-of-a-raised-timeout", found: read, commit: "ce15d1f",
		text: "A healthy session was lost if the servers had raised its timeout and the deadline was " +
			"below two fifths of it.",
		folder: "framework", tests: "^TestSessionWithARaisedTimeoutOutlivesANearDeadline$",
		says: "Received unexpected error",
	},
	{
		name: "word-of-a-replaced-leader", found: simulated, commit: "662b6ec",
		text: "A ZooKeeper leader that was replaced and did not know it confirmed a session. Two holds " +
			"were valid.",
		folder: "recipes/mutex", tests: "^TestSimulatedStaleLeader$",
		says: "reports no end",
	},
	{
		name: "sync-at-the-leader", found: onServers, commit: "1bb4d0a",
		text:   "A read after `Sync` missed what another client had been told, at the ZooKeeper leader.",
		folder: "framework", tests: "^TestSyncWaitsUntilALeaderHasAppliedWhatFollowersShow$",
		says: "Should be empty",
	},
	{
		name: "permits-of-a-lagging-server", found: simulated, commit: "e0a4efa",
		text: "After a move to a server that was behind, a semaphore gave permits beyond its limit, and " +
			"a `semaphore.Mutex` had two holders. Two later mends, of reads after a reconnect, are " +
			"taken back with it.",
		folder: "recipes/semaphore", tests: "^TestMutexHasOneHolderAlthoughAServerLags$",
		says: "a second holder",
	},
	{
		name: "slots-of-a-deleted-directory", found: simulated, commit: "e0a4efa",
		text: "Two permits had the same slot after the servers had deleted the directory of the leases " +
			"and it was created again.",
		folder: "recipes/semaphore", tests: "^TestSlotIsNotTakenByTheListOfADeletedDirectory$",
		says: "Should not be: []int{0}",
	},
	{
		name: "permit-without-an-owner", found: contracted, commit: "8cd9e17",
		text: "The context of an acquire ended just after the acquire had got its permit. The caller " +
			"got an error, and the permit was taken for as long as the session lasted.",
		folder: "recipes/internal/queue", tests: "^TestContextThatEndsAfterAWaitIsNoError$",
		says: "Received unexpected error",
	},
	{
		name: "two-fixed-limits", found: simulated, commit: "1e4ac38",
		text: "Two fixed limits were in force after the nodes of a semaphore were deleted and created " +
			"again.",
		folder: "recipes/semaphore", tests: "^TestLimitOfARecreatedNodeIsNoticed$",
		says: "the permits do not match the limit",
	},
	{
		name: "limit-in-the-semaphores-path", found: read, commit: "24f13ef",
		text: "A shared limit in the path of the semaphore was deleted with that node when nothing used " +
			"the semaphore.",
		folder: "recipes/semaphore", tests: "^TestSharedLimitInTheSemaphoresPathIsRefused$",
		says: "in chain but got nil",
	},
	{
		name: "limit-with-version-minus-one", found: read, commit: "4c56385",
		text:   "Permits beyond a lowered limit were given once its node had been written 2^31 times.",
		folder: "recipes/semaphore", tests: "^TestLimitLoweredBeforeTheTransactionIsNotExceeded$",
		says: "Should be true",
	},
	{
		name: "data-of-the-path", found: read, commit: "f7b78ce",
		text: "An acquire wrote the node that is the path of the lock, and could overwrite what a " +
			"program keeps there.",
		folder: "recipes/mutex", tests: "^TestDataOfARecreatedPathIsUnchanged$",
		says: "Not equal",
	},
	{
		name: "lists-of-a-crowd", found: attacked, commit: "f7b78ce",
		text: "Thousands of waiters of one client that came at once each listed the whole queue, and " +
			"the session was lost again and again.",
		folder: "recipes/internal/queue", tests: "^TestThousandsOfWaitersShareAFewLists$",
		says: `is not less than or equal to "20"`,
	},
	{
		name: "events-of-an-ended-session", found: attacked, commit: "fca6c92",
		text: "A session ended on the servers, and the events of its nodes came first. Several writers of " +
			"the client held a read-write lock at once.",
		folder: "recipes/rwlock",
		tests:  "^TestWriterOfTheSameClientAsksAfterADeletionThatTheClientDidNotAskFor$",
		says:   "two writers of one client hold",
	},
	{
		name: "hold-beside-a-hold", found: attacked, commit: "844a0dd",
		text: "A session ended on the servers, and the events of its nodes came first. Two holds of one " +
			"mutex in one client were valid for an instant.",
		folder: "recipes/mutex", tests: "^TestWaiterOfTheSameClientAsksAfterADeletionThatTheClientDidNotAskFor$",
		says: "two holds of one client are valid",
	},
	{
		name: "behind-a-deleted-node", found: attacked, commit: "b6e8038",
		text: "An acquire that ended after the node ahead was deleted, and before the servers had listed " +
			"the queue, matched `ErrNotAcquired`, as if the lock were not free.",
		folder: "recipes/rwlock", tests: "^TestWaiterBehindADeletedNodeIsBehindNoOther$",
		says: "should not be in err chain",
	},
	{
		name: "behind-silent-servers", found: attacked, commit: "a9bc6cc",
		text: "An acquire with hand-off that ended while the servers were silent matched " +
			"`ErrNotAcquired`, although no other holder was known.",
		folder: "recipes/internal/handoff", tests: "^TestWaiterOfASilentServerIsBehindNoOther$",
		says: "should not be in err chain",
	},
	{
		name: "path-without-acl", found: read, commit: "1c5a0b1",
		text:   "A path for which the function of `WithACL` returned no ACL was open to all clients.",
		folder: "framework", tests: "^TestNoNodeIsCreatedWithoutAnACL$",
		says: "An error is expected",
	},
	{
		name: "negative-versions", found: read, commit: "227834b",
		text: "A node that had been written 2^31 times could only be written without a check of its " +
			"version.",
		folder: "framework", tests: "^TestVersionsAfterAnOverflowAreVersions$",
		says: "Received unexpected error",
	},
	{
		name: "panic-during-a-hand-off", found: read, commit: "7adf4bc",
		text: "A logger, metrics or retry policy that panicked in an acquire left a local queue in " +
			"which later acquires waited for ever.",
		folder: "recipes/mutex", tests: "^TestLockIsFreeAfterTheProgramEndedAnAcquire$",
		says: "Received unexpected error",
	},
	{
		name: "panic-after-a-sequence", found: read, commit: "5586c9c",
		text: "A logger that panicked after the last lock of a sequence was acquired left all of them " +
			"held.",
		folder: "recipes/multilock", tests: "^TestNoLockStaysHeldIfTheAcquireOfASequenceIsEnded$",
		says: `should not contain "ephemeral"`,
	},
	{
		name: "deadline-below-the-lock", found: read, commit: "b03a637",
		text: "`AcquireWithin` took a deadline below the lock for the end of its own time, and reported " +
			"that the lock was not free.",
		folder: "recipes", tests: "^TestDeadlineBelowTheLockIsNoEndOfTheTime$",
		says: "should not be in err chain",
	},
	{
		name: "lock-delay-of-a-lagging-server", found: read, commit: "8c82675",
		text: "The lock delay of an election was skipped when the last term was read from a server that " +
			"was behind. Two later mends, of reads after a reconnect, are taken back with it.",
		folder: "recipes/leader", tests: "^TestNewLeaderWaitsAlthoughARefusalIsLost$",
		says: `is not greater than or equal to "10s"`,
	},
	{
		name: "leader-after-a-wipe", found: read, commit: "425f4bd",
		text: "An observer missed the first leader after the servers had lost their data, if it had the " +
			"token of the last one.",
		folder: "recipes/leader", tests: "^TestObserverReportsAnotherLeaderWithTheSameToken$",
		says: "no report",
	},
	{
		name: "listener-without-a-start", found: read, commit: "7d3d4b3",
		text:   "A listener of a latch that was never started left a goroutine.",
		folder: "recipes/leader", tests: "^TestListenersOfALatchWithoutStartLeaveNoGoroutine$",
		says: "blocked goroutines remain",
	},
	{
		name: "lost-session-stays", found: besieged, commit: "20e1f19",
		text: "After a long outage all waiters waited one session timeout more, behind nodes of " +
			"sessions that their clients had given up.",
		folder: "framework", tests: "^TestLostSessionIsClosedOnTheServersAfterALongOutage$",
		says: "the waiter waits for another timeout",
	},
	{
		name: "told-before-the-gap", found: besieged, commit: "b1470c8",
		text: "After a reconnect the function of a persistent watch was told later changes before it was " +
			"told that earlier ones were missing.",
		folder: "framework", tests: "^TestNothingIsToldBetweenAMissedEventAndItsNotice$",
		says: "Created /below/told",
	},
	{
		name: "busy-in-an-outage", found: tried, commit: "082a678",
		text: "An acquire that had waited behind a holder when an outage began reported a busy lock, and not " +
			"the outage.",
		folder: "recipes/mutex", tests: "^TestContract$/^mutex$/wait_that_an_outage",
		says: "framework: not connected",
	},
	{
		name: "late-replies-that-look-even", found: simulated, commit: "1eae8f9",
		text: "Behind a follower that lagged by a fifth of the timeout sessions were lost, because replies that " +
			"were late by different times seemed to be in time.",
		folder: "framework/internal/conn", tests: "^TestSessionOutlivesLateReplies$",
		says: "is not less than",
	},
	{
		name: "session-that-is-closing", found: read, commit: "f87bf13",
		text: "The servers could end a session that was being closed while a goroutine still relied on " +
			"it.",
		folder: "framework", tests: "^TestClosedSessionStaysOnTheServersUntilItsGoroutinesHaveReturned$",
		says: "should have 1 item(s), but has 0",
	},
	{
		name: "reply-during-a-pause", found: read, commit: "f87bf13",
		text:   "A process that had been paused left a healthy server whose reply had arrived.",
		folder: "framework/internal/conn", tests: "^TestReplyThatArrivesDuringAPauseOfTheClientIsNotLate$",
		says: "Received unexpected error",
	},
	{
		name: "refused-credential", found: read, commit: "1e496e0",
		text:   "A client stayed with a server that refused a credential for the moment.",
		folder: "framework/internal/conn", tests: "^TestCredentialsAreSentUntilAServerAcceptsThem$",
		says: "no connection after 1",
	},
	{
		name: "one-name-for-all-servers", found: attacked, commit: "3c2e128",
		text: "Of a name with several addresses only one was dialled, for ever if its server was " +
			"silent.",
		folder: "framework/internal/conn", tests: "^TestAllAddressesOfANameAreTried$",
		says: "elements differ",
	},
	{
		name: "slow-link", found: attacked, commit: "3c2e128",
		text: "On slow links no attempt to reconnect had enough time, and each lost connection cost the " +
			"session.",
		folder: "framework", tests: "^TestSessionIsKeptOnASlowNetwork$",
		says: "Received unexpected error",
	},
	{
		name: "memory-of-a-reply", found: hostile, commit: "3c2e128",
		text:   "A reply of 20 bytes made the client allocate 256 MiB.",
		folder: "framework/internal/conn", tests: "^TestMemoryOfAReplyIsForArrivedBytesOnly$",
		says: `is not less than "1048576"`,
	},
	{
		name: "count-of-a-hostile-reply", found: hostile, commit: "63f0aac",
		text:   "A reply of 20 bytes to `GetACL` ended the process.",
		folder: "framework", tests: "^TestACLThatIsLongerThanTheReplyIsAnError$",
		says: "out of memory",
	},
	{
		name: "missed-events", found: simulated, commit: "40eb4c8",
		text: "Watches fired late if two connections were lost in a row, and a cache told of a removal " +
			"that had not happened.",
		folder: "framework/internal/conn", tests: "^TestLostEventsAreReportedOnTheNextConnection$",
		says: "Not equal",
	},
	{
		name: "watch-not-yet-set", found: besieged, commit: "b08d263",
		text: "A persistent watch of a tree was told some changes before a server had set it, and others " +
			"among them were missing.",
		folder: "framework", tests: "^TestNothingIsToldBeforeTheWatchIsSet$",
		says: "Created /below/early",
	},
	{
		name: "late-node-behind-the-end", found: simulated, commit: "2aa8f19",
		text: "Behind the end of a directory's counter, a create that was applied a second time after the release " +
			"left a node that nothing owned.",
		folder: "framework", tests: "^TestNodeCreatedAfterItsOwnerHasDeletedItIsDeleted$",
		says: "2147483647",
	},
	{
		name: "late-node-in-a-parent-made-again", found: attacked, commit: "c8baca3",
		text: "A create that was applied a second time left a node that nothing owned, if its directory had been " +
			"deleted and created again.",
		folder: "framework", tests: "^TestNodeCreatedInAParentThatWasMadeAgainIsDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "late-node-of-a-session-not-closed", found: attacked, commit: "c8baca3",
		text: "A late create left a node that nothing owned, if no server had confirmed the end of its session: " +
			"the attempts to end it had prolonged it.",
		folder: "framework", tests: "^TestNodeOfASessionThatCannotBeClosedIsDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "late-node-while-closing", found: attacked, commit: "3046f98",
		text: "A late create left a node that nothing owned, if it was applied while the client tried to end its " +
			"session, and five minutes after its request that was over.",
		folder: "framework", tests: "^TestNodeThatIsCreatedWhileItsSessionIsBeingClosedIsDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "late-node-of-a-refused-session", found: attacked, commit: "ab7fdc0",
		text: "A late create left a node that nothing owned, if the servers refused a credential of its session: " +
			"they keep such a session until its timeout.",
		folder: "framework", tests: "^TestNodeOfASessionWhoseCredentialIsRefusedIsDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "late-node-that-is-looked-for", found: attacked, commit: "ab7fdc0",
		text: "A node that was being looked for five minutes after its request was forgotten, when another create " +
			"got no answer.",
		folder: "framework", tests: "^TestNodeThatIsLookedForWhenAnotherIsAddedIsDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "create-behind-its-own-request", found: attacked, commit: "c8baca3",
		text:   "A create failed because its node existed, which an earlier request of its own had made.",
		folder: "framework", tests: "^TestCreateBehindItsOwnLateRequest$",
		says: "node already exists",
	},
	{
		name: "node-named-as-a-guid", found: attacked, commit: "c8baca3",
		text:   "The search for late nodes deleted a node of the caller whose whole name was the GUID of another.",
		folder: "framework", tests: "^TestNodeThatIsNamedAsTheGUIDIsKept$",
		says: "elements differ",
	},
	{
		name: "late-node-that-stays", found: attacked, commit: "c8baca3",
		text:   "A late node that could not be deleted kept others from being deleted until the next reconnect.",
		folder: "framework", tests: "^TestLateNodesThatStayKeepNoOthers$",
		says: "elements differ",
	},
	{
		name: "refused-one-shot-watch", found: attacked, commit: "c8baca3",
		text: "A one-shot watch was not set again if a busy server refused the read behind the end of a " +
			"persistent watch.",
		folder: "framework", tests: "^TestRefusedOneShotWatchBehindARemovalIsRepeated$",
		says: "the change was not told",
	},
	{
		name: "party-that-has-deleted-its-node", found: simulated, commit: "08a3b5f",
		text: "A party of a cyclic barrier that had deleted its own node passed without being counted, if the " +
			"others were two generations further.",
		folder: "recipes/barrier", tests: "^TestPartyThatHasDeletedItsNodeDoesNotPass$",
		says: "in chain but got nil",
	},
	{
		name: "removal-on-the-next-connection", found: attacked, commit: "71ff0d2",
		text: "The end of a persistent watch that was decided on one connection removed a watch on the next one, " +
			"whose events were lost.",
		folder: "framework", tests: "^TestStopEndsNoWatchOfTheNextConnection$",
		says: "Created /x",
	},
	{
		name: "removal-of-a-refused-watch", found: attacked, commit: "71ff0d2",
		text: "A busy server refused to set a watch of a node in the place of one of a tree, and removed that, " +
			"too: events were lost until the next attempt.",
		folder: "framework", tests: "^TestStopOfATreeThatIsRefusedEndsNoWatch$",
		says: "DataChanged",
	},
	{
		name: "abandoned-watch", found: simulated, commit: "860f5c1",
		text:   "`Close` waited for ever for an `AddWatch` that had given up.",
		folder: "framework", tests: "^TestAbandonedAddWatchBesideAnotherIsForgotten$",
		says: "panic: hangs",
	},
	{
		name: "children-of-a-stopped-watch", found: simulated, commit: "860f5c1",
		text:   "A watch of a node missed changes of its children while a watch of the tree was stopped.",
		folder: "framework", tests: "^TestStopOfATreeWatchHidesNoChild$",
		says: `actual  : []string{"EventNotWatching "}`,
	},
	{
		name: "parent-that-is-deleted", found: simulated, commit: "5f07e05",
		text: "An acquire failed because the servers deleted an empty node above the lock at that " +
			"moment.",
		folder: "framework", tests: "^TestParentsAreSearchedAgainIfAnExistingOneIsDeleted$",
		says: "zk: node does not exist",
	},
	{
		name: "parents-of-a-large-node", found: read, commit: "7bcb6ac",
		text:   "The create of a node of the largest size and of its parent ended the connection.",
		folder: "framework", tests: "^TestParentsOfALargeNodeAreCreatedBeforeIt$",
		says: "Received unexpected error",
	},
	{
		name: "unreadable-node", found: read, commit: "7e95541",
		text:   "A cache told that all nodes below a node were removed when that one became unreadable.",
		folder: "recipes/cache", tests: "^TestNodeThatBecomesUnreadableHasChanged$",
		says: `"ready", "removed /a/b/c"`,
	},
	{
		name: "order-of-one-shot-events", found: simulated, commit: "9faa26c",
		text: "A cache on servers without persistent watches put a new child below a node that had been " +
			"replaced.",
		folder: "recipes/cache", tests: "^TestOneShotWatchesAreUsedUpBeforeANodeIsReplaced$",
		says: "it was not deleted",
	},
	{
		name: "connections-before-the-watch", found: simulated, commit: "b08d263",
		text: "A cache that could watch only after several attempts took the loss of an earlier " +
			"connection for that of its own, and followed nothing any more.",
		folder: "framework", tests: "^TestNothingIsToldBeforeTheWatchIsSet$",
		says: "Not equal",
	},
	{
		name: "long-outage-of-a-kept-node", found: read, commit: "1b95618",
		text: "A kept node whose create had lost its answer in a long outage counted as another " +
			"program's, and `Close` left it.",
		folder: "recipes/persistent", tests: "^TestLostCreateIsKnownAfterALongOutage$",
		says: "Should be empty, but was [/services",
	},
	{
		name: "update-under-the-lock", found: read, commit: "43914d3",
		text: "An update of a counter under a hold of its lock waited for a goroutine that waited for " +
			"that lock.",
		folder: "recipes/counter", tests: "^TestUpdateUnderTheLockDoesNotWaitForTheOnesInItsQueue$",
		says: "Received unexpected error",
	},
	{
		name: "members-of-a-lagging-server", found: read, commit: "89e248c",
		text:   "A member left a double barrier while another one was inside.",
		folder: "recipes/barrier", tests: "^TestLeaveKnowsMembersThatAreInside$",
		says: "it has returned",
	},
	{
		name: "ready-of-the-next-round", found: read, commit: "b44f433",
		text:   "A slow member of a double barrier deleted the node that opens the next round.",
		folder: "recipes/barrier", tests: "^TestSlowMemberDoesNotDeleteReadyOfTheNextRound$",
		says: "panic: hangs",
	},
	{
		name: "next-latch", found: read, commit: "24607b3",
		text:   "A slow deletion of a latch deleted counts of the next one.",
		folder: "recipes/barrier", tests: "^TestSlowDeletionLeavesTheNextLatchAlone$",
		says: "Not equal",
	},
	{
		name: "party-of-a-deleted-barrier", found: read, commit: "563f12c",
		text: "A party passed a cyclic barrier that had been deleted and created again, without being " +
			"counted.",
		folder: "recipes/barrier", tests: "^TestPartyOfABarrierThatIsDeletedDoesNotPass$",
		says: "Not equal",
	},
	{
		name: "signal-without-waiters", found: simulated, commit: "4ab60f4",
		text:   "`Signal` of a condition was repeated for ever when all waiters had left meanwhile.",
		folder: "recipes/condition", tests: "^TestSignalEndsWhenAllWaitersHaveLeft$",
		says: "panic: ",
	},
	{
		name: "log-of-a-loss", found: attacked, commit: "0c9d5ca",
		text:   "`Err` of a hold waited for the log of the program, if it was the first to find the loss.",
		folder: "recipes/internal/ownership", tests: "^TestErrLeavesTheLogOfALossToTheBackground$",
		says: "logged by what asks for the error",
	},
	{
		name: "late-node-of-an-outage", found: attacked, commit: "3046f98",
		text: "A late create left a node that nothing owned, also a lock node of a living session, if it was " +
			"applied in an outage, and five minutes after its request were over before the next connection.",
		folder: "framework", tests: "^TestNodeThatIsCreatedInAnOutageIsDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "late-nodes-with-long-paths", found: attacked, commit: "3046f98",
		text: "A hundred late creates with long paths were deleted in one request, which the servers do not " +
			"read: they closed the connection again and again.",
		folder: "framework", tests: "^TestLateNodesWithLongPathsAreDeleted$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "part-that-is-released", found: attacked, commit: "94b83cb",
		text:   "A hold of several locks did not end when a part of it was released by itself.",
		folder: "recipes/multilock", tests: "^TestHoldEndsWhenAPartIsReleased$",
		says: "the hold of all goes on",
	},
	{
		name: "hold-of-a-failed-acquire", found: attacked, commit: "94b83cb",
		text: "An acquire of several locks that failed deleted the nodes of an outer hold that it had " +
			"re-entered, and the contexts of that hold went on.",
		folder: "recipes/multilock", tests: "^TestFailedAcquireKeepsTheHoldThatItHasReentered$",
		says: "Received unexpected error",
	},
	{
		name: "log-of-other-losses", found: attacked, commit: "94b83cb",
		text:   "A log or metrics that blocked kept other locks of the session held after an interruption.",
		folder: "recipes/multilock", tests: "^TestReportOfALossKeepsNoOtherLock$",
		says: "released locks of the service",
	},
	{
		name: "log-that-blocks", found: attacked, commit: "3e3a1e1",
		text: "A log that blocked at the end of a session kept the session, and its locks, for as long as it " +
			"blocked.",
		folder: "recipes/mutex", tests: "^TestLogKeepsAClientFromNothing$/^blocks$",
		says: "hangs",
	},
	{
		name: "fields-that-fail-once", found: attacked, commit: "5636e7a",
		text:   "A log that failed once while it added the fields of a recipe lost all further entries of that recipe.",
		folder: "framework/internal/logqueue", tests: "^TestFieldsThatFailOnceAreAddedAtTheNextEntry$",
		says: "Not equal",
	},
	{
		name: "go-of-a-service", found: attacked, commit: "11efe6a",
		text:   "A service that ended the goroutine in which a lock was released kept the node of that lock.",
		folder: "recipes/multilock", tests: "^TestServiceThatEndsAGoroutineKeepsNoReleasedPart$",
		says: "Goexit",
	},
	{
		name: "release-that-is-not-finished", found: attacked, commit: "6a6534e",
		text: "The release of a part whose session ended in between was not finished. A lock with hand-off " +
			"then waited for its node for ever.",
		folder: "recipes/internal/ownership", tests: "^TestPartWhoseSessionEndsWhileItIsReleasedTellsItsHandoff$",
		says: "Not equal",
	},
	{
		name: "loss-that-the-whole-is-told", found: attacked, commit: "6a6534e",
		text: "The release of several locks took the loss of one of them from the program that had acquired " +
			"it: its release said only that the lock was not held.",
		folder: "recipes/multilock", tests: "^TestFirstReleaseOfALostPartTellsTheLoss$",
		says: "Target error should be in err chain",
	},
	{
		name: "session-before-its-hold", found: attacked, commit: "a0a9743",
		text: "Two session locks of a database were valid at once after an error of a renewal: the connection " +
			"was closed before the hold ended.",
		module: "contrib/sqllock", folder: ".", tests: "^TestSimulatedSessions$",
		says: "two holds are valid",
	},
	{
		name: "tickets-during-a-transaction", found: attacked, commit: "488fe86",
		text: "The fair queue of a database lost its order while a transaction had the lock: waiters took no " +
			"tickets, and kept none.",
		module: "contrib/sqllock", folder: ".", tests: "^TestTicketDuringATransaction$",
		says: "the ticket has ended",
	},
	{
		name: "party-that-comes-twice", found: simulated, commit: "c77bb12",
		text: "A party of a cyclic barrier whose create was late, and that came again meanwhile, was counted twice: " +
			"the barrier opened too early.",
		folder: "recipes/barrier", tests: "^TestPartyThatComesAgainIsCountedOnce$",
		says: "it has returned",
	},
	{
		name: "metrics-end-a-deletion", found: attacked, commit: "63be8bb",
		text: "Metrics that ended the goroutine of a deletion that needed a second attempt left the node, and its " +
			"lock held.",
		folder: "recipes/mutex", tests: "^TestNodeIsDeletedAlthoughMetricsEndItsFirstDeletion$",
		says: "context deadline exceeded",
	},
	{
		name: "new-parents-before-old-ones", found: attacked, commit: "f4f5480",
		text: "A client that went on losing answers to creates below new parents looked for their nodes first, and " +
			"never for older ones.",
		folder: "framework", tests: "^TestNewParentsKeepNoOtherFromTheSearchForLateNodes$",
		says: "Should be empty, but was [_c_",
	},
	{
		name: "session-lost-when-a-context-ends", found: besieged, commit: "be82788",
		text: "The error of a lost session was not transient if the context of the call ended at the same time, so a " +
			"program gave up.",
		folder: "framework", tests: "^TestSessionThatIsLostWhenAContextEndsIsTransient$",
		says: "Messages:   \tended",
	},
	{
		name: "panic-of-the-go-of-a-lock", found: attacked, commit: "abec192",
		text: "A lock of another service whose `Go` panicked in an acquire ended the process, though the caller " +
			"recovered.",
		folder: "recipes", tests: "^TestPanicOfTheGoOfAForeignHoldIsThatOfTheCaller$",
		says: "panic:",
	},
	{
		name: "late-member-that-leaves", found: read, commit: "0556155",
		text: "A member of a double barrier that had come late waited in `Leave` for one that waited in `Enter`, " +
			"perhaps for it.",
		folder: "recipes/barrier", tests: "^TestLateMemberLeavesWithThoseThatAreInside$",
		says: "it does not return",
	},
	{
		name: "latch-after-the-deletion", found: read, commit: "dee9aa6",
		text: "The deletion of a latch deleted the next one, too, or failed, if that one was there when it looked " +
			"again.",
		folder: "recipes/barrier", tests: "^TestDeleteEndsWithItsLatch$",
		says: "actual  : 1",
	},
	{
		name: "latch-that-is-deleted-during-a-look", found: read, commit: "dee9aa6",
		text: "A latch that was opened and deleted during the first look of a waiter counted as none. The waiter " +
			"began another one, and waited for ever.",
		folder: "recipes/barrier", tests: "^TestLatchThatIsDeletedDuringTheFirstLook$/^count_down_false$",
		says: "Not equal",
	},
	{
		name: "service-that-cannot-be-listed", found: read, commit: "d8d0ad2",
		text:   "A view of a service that the client may not list was ready and empty, and nothing said why.",
		folder: "recipes/discovery", tests: "^TestServiceThatCannotBeListedIsUnreadable$",
		says: `Expected error with "zk: not authenticated"`,
	},
	{
		name: "registration-in-a-namespace", found: read, commit: "54f7550",
		text:   "A client that used striped locks in two namespaces registered its session again and again.",
		folder: "recipes/striped", tests: "^TestNamespacesShareTheRegistration$",
		says: "should have 1 item(s), but has 2",
	},
	{
		name: "permit-beside-a-writer", found: read, commit: "7efaf6d",
		text:   "A semaphore of Redis gave a permit beside a writer of the same name, instead of an error.",
		module: "contrib/redislock", folder: ".", tests: "^TestKindsOfOneNameDoNotMix$/^miniredis$",
		says: "An error is expected but got nil",
	},
	{
		name: "second-waiter-without-an-answer", found: read, commit: "7efaf6d",
		text: "The second waiter of a client had acquired a lock of Redis, and the answer was lost. It slept " +
			"until the first one left, and the lock was idle until its key expired.",
		module: "contrib/redislock", folder: ".", tests: "^TestSecondWaiterHasTheLockWithoutAnAnswer$",
		says: "context deadline exceeded",
	},
	{
		name: "metrics-end-an-acquire", found: read, commit: "5aa6170",
		text: "Metrics that ended the goroutine of an acquire of a lock of Redis, SQL or etcd left it held until the " +
			"client was closed.",
		module: "contrib/redislock", folder: ".", tests: "^TestLockIsFreeAfterMetricsEndedAnAcquire$",
		says: "context deadline exceeded",
	},
	{
		name: "word-srvr", found: compared, commit: "16cac8c",
		text:   "The in-process server refused the word `srvr`, which a real server always answers.",
		folder: "zktest", tests: "^TestWordsThatNoWhitelistRefuses$",
		says: "srvr is not executed",
	},
	{
		name: "watch-of-an-earlier-attempt", found: simulated, commit: "5a34f03",
		text: "A cache whose first attempts to set its watch had failed took an event of these for one of its own " +
			"watch. Then it waited for the next reconnect to be current.",
		folder: "recipes/cache", tests: "^TestWatchOfAnEarlierAttemptIsIgnored$",
		says: "Should be false",
	},
}

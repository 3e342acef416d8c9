package leader_test

// The table has the scenarios of Curator's own tests of LeaderLatch and LeaderSelector. Below each is
// the test here that covers it.
//
// LeaderLatch
//
//	testWithCircuitBreaker
//		TestLatchLeadsAgainAfterEachOutage. There is no circuit breaker: the states of the
//		client come one at a time, and the listeners of a Latch get terms.
//	testUncreatedPathGetLeader
//		TestMissingPathHasNoParticipantsAndNoLeader
//	testGetChildrenHitsNoNode
//		TestCandidatesQueueAgainAfterTheServerLostItsData
//	testWatchedNodeDeletedOnReconnect
//		TestCandidateLeadsIfTheLeaderResignedDuringItsReconnect
//	testSessionInterruptionDoNotCauseBrainSplit
//		TestNodeOfALostSessionElectsNoLeader
//	testResettingOfLeadershipAfterConcurrentLeadershipChange
//		TestCandidatesThatLoseTheirSessionsTogetherElectOne
//	testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved
//		TestCandidateThatListedAFormerLeaderLeads
//	testSessionErrorPolicy
//		TestLossPolicyDecidesWhetherAnInterruptionEndsATerm. A Term that has ended stays so.
//		Leadership does not return with the node with which it was lost.
//	testErrorPolicies
//		the same
//	testProperCloseWithoutConnectionEstablished
//		TestLatchWithoutAServerClosesAtOnce
//	testResetRace
//		TestLatchThatLosesItsSessionDuringTheCreateHasOneNode. A Latch cannot be reset.
//	testCreateDeleteRace
//		TestLatchClosedDuringTheCreateLeavesNoNode
//	testLostConnection
//		TestOneCandidateLeadsAfterAnOutage
//	testCorrectWatching
//		TestCloseInTheMiddleOfTheQueueElectsNoLeader
//	testWaiting
//		TestManyLatchesHaveOneLeader
//	testBasic
//		TestLatchesLeadInTheOrderOfTheirStart
//	testBasicAlt
//		TestManyLatchesHaveOneLeader
//	testCallbackSanity
//		TestListenerThatResignsAndClosesGetsEachChangeOnce
//	testCallbackNotifyLeader
//		TestListenersGetTheEndOfATermThatCloseEnds
//	testCallbackDontNotify
//		TestListenersThatWereStoppedGetNothingFromClose
//	testNoServerAtStart
//		TestLatchStartedBeforeTheServerLeadsOnce
//	testRelativePath
//		TestInvalidPathsAreRefused
//	LeaderLatchCluster.testInCluster
//		TestLatchContinuesOnAnotherServer. With killed servers: test/chaos.
//	testAclErrorWithLeader
//		TestAwaitReturnsARefusalAndLatchLeadsLater. Await returns the error; there are no
//		listeners of unhandled errors.
//
// LeaderSelector
//
//	testInterruption
//		TestInterruptedLeaderLeadsUntilItHasReturned. A context ends, no thread is
//		interrupted.
//	testErrorPolicies
//		TestLossPolicyDecidesWhetherAnInterruptionEndsLead
//	testLeaderNodeDeleteOnInterrupt
//		TestNodeOfADisconnectedLeaderIsDeletedAfterAnInterrupt
//	testInterruptLeadershipWithRequeue
//		TestInterruptEndsTheCurrentTermOnly
//	testInterruptLeadership
//		TestInterruptedLeaderLeadsUntilItHasReturned
//	testRaceAtStateChanged
//		TestTermLostBeforeItBeginsDoesNotCallLead
//	testAutoRequeue
//		TestInterruptEndsTheCurrentTermOnly
//	testServerDying
//		TestLeadEndsBeforeAnotherCandidateCanLead
//	testKillSessionThenCloseShouldElectNewLeader
//		TestOtherCandidateLeadsAfterOneThatStopsAfterALoss
//	testKillServerThenCloseShouldElectNewLeader
//		the same
//	testClosing
//		TestCandidateThatStopsWaitingDoesNotAffectTheLeader
//	testRotatingLeadership
//		TestCandidatesThatReturnLeadInTurn
//	LeaderSelectorCluster.testRestart
//		TestElectionContinuesOnAnotherServer. With killed servers: test/chaos. The candidate
//		need not be elected again, because the session lives.
//	LeaderSelectorCluster.testLostRestart
//		TestLeaderLeadsAgainAfterTheServersLostItsNode
//	flappingTest
//		TestCandidateThatLosesItsConnectionAfterTheCreateDoesNotBlock
//	createProtectedNodeInBackgroundTest
//		TestCandidateThatGivesUpBeforeTheReplyLeavesNoNode. No call has a callback.
//	createProtectedNodeInBackgroundTestNoRetry
//		the same, because it does not matter whether requests are repeated
//	testId
//		TestIDIsThatOfTheParticipantTheLeaderAndTheNode
//	LeaderSelectorParticipants.testBasic
//		TestAllCandidatesReadTheSameParticipantsAndLeader
//	LeaderSelectorWithExecutor.test
//		TestElectionWithoutRequeueReturnsTheErrorOfLead. There are no executors: lead runs
//		on the goroutine that called Run.

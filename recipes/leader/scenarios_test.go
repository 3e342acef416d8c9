package leader_test

// The scenarios of Curator's own tests of LeaderLatch and LeaderSelector, and which test here has each.
//
// LeaderLatch
//
//	testWithCircuitBreaker                                   TestLatchLeadsAgainAfterEveryOutage. There is no circuit breaker: the client's
//	                                                         states come one at a time, and the listeners of a Latch hear of terms
//	testUncreatedPathGetLeader                               TestPathThatIsNotThereHasNoParticipantsAndNoLeader
//	testGetChildrenHitsNoNode                                TestCandidatesOfAServerThatForgotEverythingStandAnew
//	testWatchedNodeDeletedOnReconnect                        TestCandidateLeadsIfTheLeaderLeftWhileItWasLookingWithoutAConnection
//	testSessionInterruptionDoNotCauseBrainSplit              TestNodeThatOutlivesTheLossOfItsSessionMakesNobodyLeader
//	testResettingOfLeadershipAfterConcurrentLeadershipChange TestCandidatesThatLoseTheirSessionsTogetherElectOne
//	testLeadershipElectionWhenNodeDisappearsAfter-
//	    ChildrenAreRetrieved                                 TestOneOfThoseWhoSawALeaderThatHasLeftLeads
//	testSessionErrorPolicy                                   TestLossPolicySaysWhatASuspendedConnectionIsToALatch. Leadership does not come
//	                                                         back with the node that it was lost with: a Term that has ended stays so
//	testErrorPolicies                                        the same
//	testProperCloseWithoutConnectionEstablished              TestLatchThatNeverSawAServerClosesAtOnceAndCreatesNothing
//	testResetRace                                            TestLatchThatLosesItsSessionWhileItGetsInLineHasOneNode. Nobody can reset a Latch
//	testCreateDeleteRace                                     TestLatchThatIsClosedWhileItGetsInLineLeavesNoNode
//	testLostConnection                                       TestOutageLeavesNoLeaderAndItsEndOne
//	testCorrectWatching                                      TestCandidateThatLeavesTheMiddleOfTheLineMakesNobodyLeader
//	testWaiting                                              TestLatchesThatManyGoroutinesStartAndAwaitNeverLeadTwoAtATime
//	testBasic                                                TestLatchesLeadOneAfterTheOtherInTheOrderOfTheirStart
//	testBasicAlt                                             TestLatchesThatManyGoroutinesStartAndAwaitNeverLeadTwoAtATime
//	testCallbackSanity                                       TestListenerThatResignsAndThenClosesHearsEachChangeOnce
//	testCallbackNotifyLeader                                 TestListenersOfThoseLatchesHearOfTheEndThatAreToNotifyThem
//	testCallbackDontNotify                                   TestListenersHearNothingOfACloseThatEndsNoTermOrIsSilent
//	testNoServerAtStart                                      TestLatchThatWasStartedBeforeTheServerLeadsOnce
//	testRelativePath                                         TestPathsThatAreNoneAreRefused
//	LeaderLatchCluster.testInCluster                         TestLeaderThatHasAnotherServerToGoToGoesOnLeading; with servers killed, test/chaos
//	testAclErrorWithLeader                                   TestLatchThatIsRefusedTellsAwaitAndLeadsOnceItIsLetIn. Await tells; there are no
//	                                                         listeners of unhandled errors
//
// LeaderSelector
//
//	testInterruption                                         TestInterruptedLeaderLeadsUntilItHasReturned. A context ends, no thread is interrupted
//	testErrorPolicies                                        TestLossPolicySaysWhatASuspendedConnectionIsToLead
//	testLeaderNodeDeleteOnInterrupt                          TestNodeOfALeaderThatWasInterruptedWithoutAServerIsDeletedAfterwards
//	testInterruptLeadershipWithRequeue                       TestInterruptsBeforeDuringAndAfterATermCostThatTermOnly
//	testInterruptLeadership                                  TestInterruptedLeaderLeadsUntilItHasReturned
//	testRaceAtStateChanged                                   TestTermThatIsLostBeforeItBeginsDoesNotCallLead
//	testAutoRequeue                                          TestInterruptsBeforeDuringAndAfterATermCostThatTermOnly
//	testServerDying                                          TestLeadEndsBeforeTheServersWouldLetSomebodyElseLead
//	testKillSessionThenCloseShouldElectNewLeader             TestOtherCandidateTakesOverFromOneThatStopsAfterALoss
//	testKillServerThenCloseShouldElectNewLeader              the same
//	testClosing                                              TestCandidateThatStopsWaitingChangesNothingForTheLeader
//	testRotatingLeadership                                   TestCandidatesThatReturnTakeTurns
//	LeaderSelectorCluster.testRestart                        TestElectionThatHasAnotherServerToGoToGoesOnLeading; with servers killed, test/chaos.
//	                                                         The leadership need not be won again: the session lives
//	LeaderSelectorCluster.testLostRestart                    TestLeaderOfAnEnsembleThatComesBackWithoutItsNodeLeadsAgain
//	flappingTest                                             TestCandidateThatLosesItsConnectionRightAfterGettingInLineMakesRoom
//	createProtectedNodeInBackgroundTest                      TestCandidateThatGivesUpWithoutHavingHeardOfItsNodeLeavesNone. No call has a callback
//	createProtectedNodeInBackgroundTestNoRetry               the same: whether requests are repeated makes no difference to it
//	testId                                                   TestIdIsThatOfTheParticipantTheLeaderAndTheNode
//	LeaderSelectorParticipants.testBasic                     TestEveryCandidateSeesTheSameParticipantsAndTheSameLeader
//	LeaderSelectorWithExecutor.test                          TestElectionThatDoesNotStandAgainLeadsOnceAndReturnsWhatLeadDid. There are no
//	                                                         executors: lead runs on the goroutine that called Run

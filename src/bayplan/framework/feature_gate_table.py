"""The feature gates of kube-scheduler v1.36.3: stage, default, whether the default is locked; and their dependencies.

The table was read from the kube-scheduler binary of the pinned release. ``feature_gates.py`` interprets it.
"""

from collections.abc import Mapping
from typing import Final

_GATES_BY_FACTS: Final[Mapping[tuple[str, bool, bool], str]] = {
    ("ALPHA", False, False): """
        APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
        CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
        CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
        CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
        DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero
        ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
        KubeletInUserNamespace LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS
        MutablePVNodeAffinity NativeHistograms PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
        PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
        RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StorageVersionAPI
        TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
        UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption
        WorkloadWithJob
    """,
    ("BETA", False, False): """
        AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
        CoordinatedLeaderElection DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring
        MaxUnavailableStatefulSet PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls
        StorageVersionMigrator
    """,
    ("BETA", True, False): """
        APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
        AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
        ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
        ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
        DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource
        DRAPartitionableDevices DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
        DRASchedulerFilterTimeout DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
        DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet GracefulNodeShutdown
        GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
        InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
        InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
        KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
        LoggingBetaOptions MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
        MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
        NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
        PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
        PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
        ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
        ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
        SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
        SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
        StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
        StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
        StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
        TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions
        TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
        UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook
        WatchList WatchListClient WindowsGracefulNodeShutdown
    """,
    ("GA", True, False): """
        AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion
        MutatingAdmissionPolicy
    """,
    ("GA", True, True): """
        APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
        AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
        CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess
        DeclarativeValidation DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout
        ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers
        InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy
        KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources
        KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity
        MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode
        NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion
        PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
        PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
        RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
        ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod
        SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI
        ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
        SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
        StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog
        TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay
    """,
    ("DEPRECATED", False, False): """
        AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
        DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
    """,
    ("DEPRECATED", False, True): """
        AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
    """,
    ("DEPRECATED", True, False): """
        DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
        StorageNamespaceIndex
    """,
    ("DEPRECATED", True, True): """
        AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
    """,
}

GATES: Final[Mapping[str, tuple[str, bool, bool]]] = dict(
    sorted((name, facts) for facts, names in _GATES_BY_FACTS.items() for name in names.split())
)
"""By gate, in alphabetical order: stage (ALPHA, BETA, GA, DEPRECATED), default, and whether the default is locked."""

_DEPENDENTS: Final[Mapping[str, str]] = {
    "APIServerIdentity": "StorageVersionAPI UnknownVersionInteroperabilityProxy",
    "AtomicFIFO": """
        StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
        StaleControllerConsistencyStatefulSet
    """,
    "AuthorizeNodeWithSelectors": "PodCertificateRequest",
    "AuthorizeWithSelectors": "AuthorizeNodeWithSelectors",
    "ClusterTrustBundle": "ClusterTrustBundleProjection",
    "ContainerRestartRules": "RestartAllContainersOnContainerExits",
    "DRADeviceTaints": "DRADeviceTaintRules",
    "DRAResourceClaimDeviceStatus": "DRADeviceBindingConditions DRAResourceClaimGranularStatusAuthorization",
    "DeclarativeValidation": "DeclarativeValidationBeta DeclarativeValidationTakeover",
    "DynamicResourceAllocation": """
        DRAAdminAccess DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource
        DRAListTypeAttributes DRANodeAllocatableResources DRAPartitionableDevices DRAPrioritizedList
        DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DRASchedulerFilterTimeout
        DRAWorkloadResourceClaims ResourceHealthStatus
    """,
    "GangScheduling": "WorkloadAwarePreemption",
    "GenericWorkload": """
        DRAWorkloadResourceClaims GangScheduling TopologyAwareWorkloadScheduling WorkloadWithJob
    """,
    "GracefulNodeShutdown": "GracefulNodeShutdownBasedOnPodPriority WindowsGracefulNodeShutdown",
    "ImageVolume": "ImageVolumeWithDigest",
    "InPlacePodVerticalScaling": """
        InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingExclusiveCPUs
        InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingInitContainers
    """,
    "MatchLabelKeysInPodTopologySpread": "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "MultiCIDRServiceAllocator": "DisableAllocatorDualWrite",
    "NodeDeclaredFeatures": """
        ExtendWebSocketsToKubelet InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
        RestartAllContainersOnContainerExits UserNamespacesHostNetworkSupport
    """,
    "PodLevelResources": "InPlacePodLevelResourcesVerticalScaling PodLevelResourceManagers",
    "PodLifecycleSleepAction": "PodLifecycleSleepActionAllowZero",
    "ResourceHealthStatus": "ResourceHealthStatusMessage",
    "ServiceAccountTokenNodeBindingValidation": "ServiceAccountTokenNodeBinding",
    "StructuredAuthenticationConfiguration": """
        StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
    """,
    "UserNamespacesSupport": "ProcMountType UserNamespacesHostNetworkSupport",
}

DEPENDENCIES: Final[dict[str, list[str]]] = {}
"""The gates that each gate depends on: it can't be enabled while one of them is disabled."""

for _needed, _dependents in _DEPENDENTS.items():
    for _name in _dependents.split():
        DEPENDENCIES.setdefault(_name, []).append(_needed)

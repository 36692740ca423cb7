// The types of our HTTP API, generated from the structs of bayplan.http_api by scripts/make_page_types.py: don't edit.
declare namespace Api {
  /** One plugin's weighted score of the chosen node, minus its weighted score of another node, usually the runner-up. */
  interface Advantage {
    plugin: string;
    points: number;
  }

  /** The outcomes of the documents in a text. Replaced objects count as created. */
  interface Applied {
    items: AppliedItem[];
    created: number;
    refused: number;
  }

  /** The outcome of one document. */
  interface AppliedItem {
    index: number;
    line: number;
    kind: string;
    namespace: string;
    name: string;
    path: string;
    problems: AppliedProblem[];
    action: "created" | "refused" | "replaced";
    message: string;
  }

  /** An error that the API reported in a document. */
  interface AppliedProblem {
    line: number;
    path: string;
    message: string;
  }

  /** Documents to write. */
  interface ApplyRequest {
    text: string;
    count?: number | null;
    dry_run?: boolean;
    replace?: boolean;
  }

  /** One attempt to schedule the pod. */
  interface Attempt {
    number: number;
    attempt: number;
    time_ns: number;
    outcome: string;
    node: string;
    feasible_nodes: number;
    evaluated_nodes: number;
    ties: number;
    total: number;
    message: string;
    nominated_node: string;
    victims: string[];
  }

  /** The plugin results of one attempt. */
  interface AttemptDetail {
    attempt: Attempt;
    nodes: number;
    examined: number;
    feasible: number;
    ended_early: boolean;
    tried_alone: string;
    rejections: Rejection[];
    rejected_by_pre_filter: boolean;
    scored: boolean;
    best: NodeScore[];
    tie_set: string[];
    runner_up: string;
    margin: number;
    advantages: Advantage[];
    remedies: Remedy[];
    extenders: ExtenderReport[];
  }

  /** Statistics of scheduling attempts. */
  interface AttemptFacts {
    pods: number;
    total: number;
    most: number;
    most_pod: string;
    repeated: number;
  }

  /** A page of the attempts of one pod, the newest last. */
  interface AttemptList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: AttemptSummary[];
  }

  /** A decision in the list of one pod's attempts. */
  interface AttemptSummary {
    number: number;
    at: string;
    namespace: string;
    name: string;
    attempt: number;
    outcome: string;
    node: string;
    feasible_nodes: number;
    evaluated_nodes: number;
    ties: number;
    total: number;
    margin: number | null;
    runner_up: string;
    message: string;
    nominated_node: string;
    victims: string[];
    tier: string | null;
    woken_by: string | null;
    annotated: boolean;
    text: string;
    difference: string;
  }

  /** The response to a batch: outcomes in the order of the entries, and the number of entries by outcome. */
  interface Batch {
    items: Outcome[];
    created: number;
    exists: number;
    deleted: number;
    absent: number;
    refused: number;
  }

  /** A node on which preemption could have made room. */
  interface CandidateReport {
    node: string;
    chosen: boolean;
    victims: Victim[];
    pdb_violations: number;
    priority_sum: number;
    lost_by: string;
  }

  /** The number of further copies of a workload, or of a mix, that fit; see `bayplan.answers.capacity.CapacityAnswer`. */
  interface Capacity {
    summary: string;
    copies: number;
    mixes: number;
    reached_limit: boolean;
    workloads: WorkloadCapacity[];
    groups: GroupCapacity[];
    victims: VictimRow[];
    stopped_by: string;
    message: string;
    runs_out: Record<string, number>;
    seeds: Record<string, number>;
    assumptions: string[];
  }

  /** A group of nodes in the heat map. */
  interface CellGroup {
    name: string;
    nodes: string[];
    cells: number[];
    flags: number[];
  }

  /** The heat map. */
  interface Cells {
    version: number;
    layout: number;
    metric: string;
    by: string;
    metrics: string[];
    groups: CellGroup[];
  }

  /** Changes of the heat map, in a frame of the stream. */
  interface CellsChanged {
    version: number;
    layout: number;
    metric: string;
    known: boolean;
    complete: boolean;
    names: string[];
    cells: number[];
    flags: number[];
  }

  /** New settings of the clock. Absent fields are unchanged. */
  interface ClockChange {
    paused?: boolean | null;
    speed?: number | null;
  }

  /** The time, its speed, and whether it is ``real`` or ``virtual``. */
  interface ClockStatus {
    now: string;
    paused: boolean;
    speed: number;
    mode: string;
  }

  /** The clock after a step. */
  interface ClockStep {
    now: string;
    paused: boolean;
    speed: number;
    mode: string;
    done: boolean;
    decisions: DecisionSummary[];
  }

  /** The number of pods and nodes, by status. */
  interface ClusterTotals {
    pods: number;
    placed: number;
    waiting: number;
    gated: number;
    terminating: number;
    finished: number;
    nodes: number;
    nodes_not_ready: number;
    nodes_cordoned: number;
    nodes_full: number;
    nodes_empty: number;
  }

  /** One attempt with one list per column: the response to ``form=columns``. */
  interface ColumnMatrix {
    form: "columns";
    number: number;
    recorded: true;
    record_level: string;
    nodes: number;
    counts: MatrixCounts;
    winner: string;
    runner_up: string;
    margin: number | null;
    tie_set: string[];
    pre_filters: string[];
    filters: string[];
    scorers: MatrixScorer[];
    statuses: MatrixStatus[];
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    attempt: number;
    summary: string;
    skipped: string[];
    max_score: number;
    points: MatrixPoints;
    annotated?: boolean;
    rows: MatrixColumns;
  }

  /** A number, as measured in both runs. */
  interface ComparedFigure {
    name: string;
    a: number;
    b: number;
  }

  /** The last attempt of a pod in one run. */
  interface ComparedMatrix {
    name: string;
    matrix: RowMatrix | ColumnMatrix | NoMatrix;
  }

  /** A pod whose node differs. */
  interface ComparedPod {
    pod: string;
    kind: string;
    a_node: string;
    b_node: string;
    missing_in: string;
    decisive_plugin: DecisivePlugin | null;
  }

  /** One of two compared runs. */
  interface ComparedRun {
    name: string;
    kind: string;
    at?: string;
    sources?: SourceFacts[];
    url?: string;
    instance?: string;
    digest?: string;
    id?: string;
  }

  /** The differences between two runs. */
  interface Comparison {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    summary: string;
    a: ComparedRun;
    b: ComparedRun;
    counts: ComparisonCounts;
    metrics: ComparedFigure[];
    items: ComparedPod[];
  }

  /** The number of pods in either run, and the number of pods that differ, by kind of difference. */
  interface ComparisonCounts {
    pods: number;
    moved: number;
    only_a: number;
    only_b: number;
  }

  /** The configuration in use: as given, and with defaults applied. */
  interface Configuration {
    text: string;
    effective: Record<string, unknown>;
    extension_points: Record<string, Record<string, PointPlugin[]>>;
  }

  /** An error in a configuration, its location, and a suggestion. */
  interface ConfigurationProblem {
    line: number;
    column: number;
    path: string;
    message: string;
    hint: string;
  }

  /** Number of cycles by outcome, and how they are recorded. */
  interface DecisionCounts {
    total: number;
    scheduled: number;
    unschedulable: number;
    errors: number;
    skipped: number;
    record_level: string;
    record_bytes: number;
  }

  /** Decisions, the newest last. */
  interface DecisionList {
    version: number;
    items: DecisionSummary[];
    total: number;
    total_is_exact: boolean;
    oldest: number;
    oldest_summary: number;
    next: number;
    limit: number;
  }

  /** The number of decisions, their recent rate per second, and the 99th percentile of their duration. */
  interface DecisionRate {
    total: number;
    per_second: number;
    p99_ms: number;
  }

  /** A decision in a list. */
  interface DecisionSummary {
    number: number;
    at: string;
    namespace: string;
    name: string;
    attempt: number;
    outcome: string;
    node: string;
    feasible_nodes: number;
    evaluated_nodes: number;
    ties: number;
    total: number;
    margin: number | null;
    runner_up: string;
    message: string;
    nominated_node: string;
    victims: string[];
    tier: string | null;
    woken_by: string | null;
    annotated: boolean;
    text: string;
  }

  /** New decisions, in a frame of the stream. */
  interface DecisionsChanged {
    version: number;
    oldest: number;
    items: DecisionSummary[];
    left_out: number;
  }

  /** The plugin that decided differently on two sides. */
  interface DecisivePlugin {
    name: string;
    a: string | number | null;
    b: string | number | null;
  }

  /** The default configuration, as a document and as YAML. */
  interface DefaultConfiguration {
    text: string;
    effective: Record<string, unknown>;
  }

  /** The number of decisions in equal parts of a span. */
  interface Density {
    from: number;
    to: number;
    oldest: number;
    newest: number;
    from_at: string;
    to_at: string;
    bins: number;
    lanes: DensityLanes;
    numbers: number[];
  }

  /** Counts in each part of a span: decisions by outcome, decisions that preempted pods, and changes of nodes. */
  interface DensityLanes {
    scheduled: number[];
    waits: number[];
    error: number[];
    preemptions: number[];
    nodes: number[];
  }

  /** The number of pods evicted from a node, and the pods that could not be evicted. */
  interface Drained {
    evicted: number;
    refused: EvictionRefused[];
  }

  /** The body of every response with a status of 400 or above. */
  interface Error {
    error: Refused;
  }

  /** A Kubernetes event about the pod; times since the start of the run. */
  interface EventLine {
    type: string;
    reason: string;
    note: string;
    first_ns: number;
    last_ns: number;
    count: number;
  }

  /** A Kubernetes event. */
  interface EventRow {
    type: string;
    reason: string;
    note: string;
    first_at: string;
    last_at: string;
    count: number;
  }

  /** A pod that was evicted to make room. */
  interface Eviction {
    pod: string;
    node: string;
    preemptor: string;
    priority: number;
    controller: string;
  }

  /** A pod that could not be evicted, and why. */
  interface EvictionRefused {
    pod: string;
    message: string;
  }

  /** The explanation of one pod of a run. Times are nanoseconds of virtual time since the start of the run. */
  interface Explanation {
    verdict: string;
    message: string;
    pod: string;
    workload: string;
    priority: number;
    scheduler_name: string;
    fate: string;
    node: string;
    imported: boolean;
    arrived_ns: number;
    bound_ns: number | null;
    ended_ns: number | null;
    attempts: Attempt[];
    detail: AttemptDetail | null;
    node_detail: NodeDetail | null;
    preemption: PreemptionReport | null;
    events: EventLine[];
    notes: string[];
    assumptions: string[];
    age_ns: number | null;
    reported_at: string;
    message_now: string;
  }

  /** All objects except events, as a List of Kubernetes documents, with the scheduler's configuration as text. */
  interface Exported {
    apiVersion: string;
    kind: string;
    configuration: string;
    items: Record<string, unknown>[];
  }

  /** The result of an HTTP extender in an attempt. Its rejections and scores are listed like a plugin's, under its name. */
  interface ExtenderReport {
    extender: string;
    asked: number;
    rejected: number;
    scored: boolean;
    filter_error: string;
    ignored: boolean;
    prioritize_error: string;
  }

  /** A value of a field, and the number of matching items that have it. */
  interface Facet {
    value: string;
    count: number;
  }

  /** A failure of a plugin. */
  interface FailedPlugin {
    plugin: string;
    point: string;
    message: string;
  }

  /** All forks, the oldest first. */
  interface ForkList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: ForkStatus[];
  }

  /** The progress of a fork: its virtual time, and the number of decisions and of waiting pods. */
  interface ForkProgress {
    now: string;
    decisions: number;
    waiting: number;
  }

  /** The change to try in a fork. */
  interface ForkRequest {
    from?: string;
    config?: string | null;
    objects?: Record<string, unknown>[];
    delete?: Reference[];
    seed?: number | null;
    until?: number | null;
    name?: string;
    reschedule?: string[];
  }

  /** A fork. */
  interface ForkStatus {
    id: string;
    name: string;
    from: string;
    state: string;
    created_at: string;
    message: string;
    progress: ForkProgress | null;
    facts: RunFacts | null;
  }

  /** Fragmentation at the end of a run. */
  interface FragmentationFacts {
    resources: ResourceFragmentation[];
    waiting: ShapeFacts[];
    shapes: number;
    common_pods: number;
    pods: number;
  }

  /** The result for one group of nodes. */
  interface GroupCapacity {
    zone: string;
    pool: string;
    nodes: number;
    nodes_with_room: number;
    nodes_left: number;
    copies: number;
    runs_out: Record<string, number>;
  }

  /** The cost of a group's nodes over a run. */
  interface GroupCost {
    group: string;
    price: number;
    nodes: number;
    peak: number;
    node_hours: number;
    cost: number;
  }

  /** The result of an import. */
  interface Imported {
    loaded: Record<string, number>;
    replaced: number;
    unknown_fields: Record<string, string[]>;
    total: number;
  }

  /** The loaded input, and its ignored parts. */
  interface InputFacts {
    files: number;
    objects: Record<string, number>;
    unused: Record<string, number>;
    warnings: Record<string, number>;
    first_warnings: WarningFacts[];
    failures: Record<string, string>;
  }

  /** The result of a plugin that runs after a node has been chosen. */
  interface LateAnswer {
    plugin: string;
    status: string;
    message: string;
  }

  /** The rows as one list per column, each with an entry for each node. */
  interface MatrixColumns {
    node: string[];
    total: (number | null)[];
    tie: boolean[];
    plugin: string[];
    gap: string[];
    pre_filters: number[][];
    filters: ((number | null)[])[];
    raw: ((number | null)[])[];
    normalized: ((number | null)[])[];
    weighted: ((number | null)[])[];
  }

  /** The number of nodes that fit, failed, or were not evaluated. */
  interface MatrixCounts {
    fit: number;
    failed: number;
    not_evaluated: number;
  }

  /** Plugin results at extension points other than Filter and Score. Points from Reserve on are present only if recorded. */
  interface MatrixPoints {
    pre_filter: PreFilterAnswer[];
    pre_score: PreScoreAnswer[];
    extenders: ExtenderReport[];
    reserve?: LateAnswer[];
    permit?: LateAnswer[];
    pre_bind?: LateAnswer[];
    bind?: LateAnswer[];
  }

  /** A node. */
  interface MatrixRow {
    node: string;
    total: number | null;
    tie: boolean;
    plugin: string;
    gap: string;
    pre_filters: number[];
    filters: (number | null)[];
    raw: (number | null)[];
    normalized: (number | null)[];
    weighted: (number | null)[];
  }

  /** A score plugin. */
  interface MatrixScorer {
    name: string;
    weight: number | null;
    scale: number[] | null;
  }

  /** A status that filters returned; rows refer to it by `index`. */
  interface MatrixStatus {
    index: number;
    code: string;
    plugin: string;
    reasons: string[];
  }

  /** A measurement of the cluster before and after: counts, and requested or fragmented amounts as fractions of 1. */
  interface Measure {
    name: string;
    before: number;
    after: number;
  }

  /** The number of pods moved to the active queue. */
  interface Moved {
    moved: number;
  }

  /** An attempt without a full record; `why` gives the reason. `number` is -1 if the pod has no attempts. */
  interface NoMatrix {
    form: "none";
    number: number;
    recorded: false;
    why: string;
    record_level: string;
    rows: MatrixRow[];
    total: number;
    attempt?: number;
  }

  /** A pod on a node with its requests, in milli-CPU and bytes. */
  interface NodeBlock {
    namespace: string;
    name: string;
    cpu: number;
    memory: number;
    priority: number;
  }

  /** A condition of a node. */
  interface NodeCondition {
    type: string;
    status: string;
    reason: string;
    message: string;
  }

  /** The number of nodes and zones at the end, and the number of nodes that were ever added or removed. */
  interface NodeCounts {
    total: number;
    zones: number;
    added: number;
    removed: number;
  }

  /** The results of all plugins for one node in one attempt. */
  interface NodeDetail {
    node: string;
    fate: string;
    verdicts: PluginVerdict[];
    score: NodeScore | null;
    advantages: Advantage[];
    free: Record<string, number>;
    requested: Record<string, number>;
  }

  /** The zones and pools of the matching nodes, those with the most nodes first. */
  interface NodeFacets {
    zone: Facet[];
    pool: Facet[];
  }

  /** The pods on one node in each part of a span: running at its end, placed during it, and removed during it. */
  interface NodeLane {
    node: string;
    running: number[];
    placed: number[];
    left: number[];
  }

  /** The pods on nodes over time, the nodes with the most changes first. */
  interface NodeLanes {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: NodeLane[];
    from_at: string;
    to_at: string;
    bins: number;
  }

  /** A page of the table of nodes. */
  interface NodeList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    version: number;
    items: NodeRow[];
    facets?: NodeFacets;
  }

  /** The details of one node. */
  interface NodePage {
    name: string;
    zone: string;
    pool: string;
    ready: boolean;
    cordoned: boolean;
    allocatable: Record<string, number>;
    requested: Record<string, number>;
    free: Record<string, number>;
    shares: Record<string, number>;
    most_pods: number;
    taints: string[];
    created_at: string;
    version: number;
    summary: string;
    labels: Record<string, string>;
    conditions: NodeCondition[];
    pods: PodRow[];
    pods_total: number;
    events: EventRow[];
    rejected: PodsRejected[];
    rejected_is_exact: boolean;
    rejected_missing: string;
  }

  /** A node in a table. */
  interface NodeRow {
    name: string;
    zone: string;
    pool: string;
    ready: boolean;
    cordoned: boolean;
    allocatable: Record<string, number>;
    requested: Record<string, number>;
    free: Record<string, number>;
    shares: Record<string, number>;
    most_pods: number;
    taints: string[];
    created_at: string;
    pods: number;
    blocks?: NodeBlock[];
  }

  /** A feasible node with its scores. */
  interface NodeScore {
    node: string;
    rank: number;
    total: number;
    tied: boolean;
    chosen: boolean;
    scores: PluginScore[];
  }

  /** Nodes that the same plugin rejected with the same message. `nodes` is their number. */
  interface NodesRejected {
    text: string;
    plugin: string;
    nodes: number;
  }

  /** The outcome of one entry of a batch. */
  interface Outcome {
    outcome: string;
    code: number;
    kind?: string;
    namespace?: string;
    name?: string;
    uid?: string;
    resource_version?: string;
    message?: string;
    warnings?: string[];
    object?: Record<string, unknown>;
  }

  /** A summary of the cluster and its problems. */
  interface Overview {
    version: string;
    summary: string;
    counts: ClusterTotals;
    decisions: DecisionRate;
    reasons: ReasonRow[];
    queue: QueueStatus;
    utilisation: UsageRow[];
    utilisation_history: UsagePoint[];
    preemptions: number;
    binding_failures: number;
    latest: DecisionSummary[];
    clock: ClockStatus;
    scheduler: SchedulerStatus;
    source: SourceFacts | null;
  }

  /** Waiting pods with the same message. */
  interface PendingFacts {
    fate: string;
    message: string;
    pods: number;
    examples: string[];
  }

  /** A pod and its node; "" if the pod waits. */
  interface Placement {
    pod: string;
    node: string;
  }

  /** The node of each unfinished pod. */
  interface Placements {
    pods: string[];
    nodes: string[];
    instance: string;
  }

  /** An exception of a plugin: its newest time and traceback, and how often it was raised. */
  interface PluginIncident {
    at: string;
    point: string;
    exception: string;
    traceback: string;
    count: number;
  }

  /** All available plugins. */
  interface PluginList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: PluginRow[];
  }

  /** A plugin. */
  interface PluginRow {
    name: string;
    points: string[];
    enabled: string[];
    file: string | null;
    built_in: boolean;
    failures: PluginIncident[];
    documentation: string | null;
  }

  /** The score of one node by one plugin: raw, normalised to 0..100, and weighted. */
  interface PluginScore {
    plugin: string;
    weight: number;
    raw: number;
    normalized: number;
    weighted: number;
  }

  /** The result of one filter for one node: Success, or another code with reasons. */
  interface PluginVerdict {
    plugin: string;
    code: string;
    reasons: string[];
    change: string;
  }

  /** A frame of the stream about one pod: what to show until its details have been fetched. */
  interface PodChanged {
    version: string;
    exists: boolean;
    deleted: boolean;
    summary?: string;
    short?: string;
    status?: string;
    node?: string;
    attempts?: number;
  }

  /** The last attempts of a pod in two runs, and the plugin that decided differently. */
  interface PodComparison {
    pod: string;
    a_node: string;
    b_node: string;
    decisive_plugin: DecisivePlugin | null;
    a: ComparedMatrix;
    b: ComparedMatrix;
  }

  /** The number of pods, in all and by their state at the end. */
  interface PodCounts {
    total: number;
    imported: number;
    bound: number;
    placed: number;
    succeeded: number;
    failed: number;
    deleted: number;
    evicted: number;
    pending: number;
    gated: number;
    unattended: number;
  }

  /** A pod whose node differs. */
  interface PodDifference {
    pod: string;
    workload: string;
    kind: string;
    before: string;
    after: string;
    plugin: string;
    reason: string;
  }

  /** The values of each field among the matching pods, the most frequent first. */
  interface PodFacets {
    status: Facet[];
    reason: Facet[];
    namespace: Facet[];
    node: Facet[];
    priority: Facet[];
  }

  /** A pod's properties and requests. */
  interface PodFacts {
    namespace: string;
    name: string;
    uid: string;
    workload: string;
    priority: number;
    priority_class: string;
    scheduler_name: string;
    qos: string;
    phase: string;
    cpu: number;
    memory: number;
    requests: Record<string, number>;
    node: string;
    nominated_node: string;
    imported: boolean;
    created_at: string | null;
    bound_at: string | null;
    ended_at: string | null;
    labels: Record<string, string>;
  }

  /** A page of the table of pods. */
  interface PodList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    version: number;
    items: PodRow[];
    facets?: PodFacets;
  }

  /** The details of one pod. */
  interface PodPage {
    summary: string;
    short: string;
    message: string;
    status: string;
    deleted: boolean;
    pod: PodFacts;
    attempts: AttemptSummary[];
    rejections: NodesRejected[];
    events: EventRow[];
    queue: QueueRow | null;
    manifest: Record<string, unknown> | null;
    manifest_text: string;
  }

  /** A pod in a table. */
  interface PodRow {
    namespace: string;
    name: string;
    status: string;
    node: string;
    why: string;
    runner_up: string;
    cpu: number;
    memory: number;
    priority: number;
    attempts: number;
    created_at: string;
    workload: string;
    scheduler_name: string;
  }

  /** The number of unfinished pods, and the number of pods by status. */
  interface PodTotals {
    pods: number;
    placed: number;
    waiting: number;
    gated: number;
    terminating: number;
    finished: number;
  }

  /** A frame of the stream: the pods changed. */
  interface PodsChanged {
    version: number;
    counts: PodTotals;
  }

  /** Waiting pods that a node rejected with the same message in their last attempts. */
  interface PodsRejected {
    text: string;
    pods: number;
    example: string;
  }

  /** A plugin at an extension point; `source` (``from``) is ``default``, ``configuration``, or the file of a custom plugin. */
  interface PointPlugin {
    plugin: string;
    weight: number;
    from: string;
  }

  /** The result of a PreFilter plugin. `nodes` is the number of nodes that it allows; null if it allows all. */
  interface PreFilterAnswer {
    plugin: string;
    status: string;
    message: string;
    nodes: number | null;
  }

  /** The result of a PreScore plugin. */
  interface PreScoreAnswer {
    plugin: string;
    status: string;
  }

  /** Nodes on which a pod would not fit even without any pod of lower priority. */
  interface PreemptionRefusal {
    plugin: string;
    code: string;
    reasons: string[];
    nodes: string[];
    count: number;
  }

  /** The result of one search for pods to preempt. */
  interface PreemptionReport {
    attempt: number;
    chosen: string;
    candidates: CandidateReport[];
    candidate_count: number;
    refusals: PreemptionRefusal[];
    struck_out: string[];
    untried: number;
    not_helpful: number;
  }

  /** A frame of the stream about the queue. */
  interface QueueChanged {
    version: number;
    busy: boolean;
    counts: QueueCounts;
    summary?: string;
    next_retry_at?: string | null;
  }

  /** The number of pods in each tier. */
  interface QueueCounts {
    active: number;
    backoff: number;
    unschedulable: number;
    gated: number;
  }

  /** A page of the queue, or of one of its tiers. */
  interface QueueList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    version: number;
    summary: string;
    counts: QueueCounts;
    next_retry_at: string | null;
    items: QueueRow[];
    histogram: WaitHistogram;
  }

  /** A pod in the scheduling queue. */
  interface QueueRow {
    namespace: string;
    name: string;
    position: number;
    priority: number;
    attempts: number;
    tier: string;
    since: string;
    retry_at: string | null;
    rejected_by: string[];
    message: string;
    wakes_on: string[];
  }

  /** The number of pods in each tier, and the time when the next backoff ends; null if no pod is in backoff, or if unknown. */
  interface QueueStatus {
    active: number;
    backoff: number;
    unschedulable: number;
    gated: number;
    next_retry_at: string | null;
  }

  /** A reason why pods wait. */
  interface ReasonRow {
    text: string;
    pods: number;
    main_pods: number;
  }

  /** A reference to an object by kind, name and namespace. */
  interface Reference {
    kind: string;
    name: string;
    namespace?: string;
  }

  /** Why a request was rejected. Texts that don't apply are empty. */
  interface Refused {
    what: string;
    where: string;
    got: string;
    wanted: string;
    hint: string;
    request_id: string;
  }

  /** Nodes that the same plugin rejected with the same message. */
  interface Rejection {
    plugin: string;
    code: string;
    reasons: string[];
    nodes: string[];
  }

  /** A change that gets the pod placed, tried by scheduling in a copy of the cluster (`bayplan.answers.unblock`). */
  interface Remedy {
    kind: string;
    text: string;
    nodes: string[];
  }

  /** The fragmentation of one resource; amounts are in units of the state. */
  interface ResourceFragmentation {
    resource: string;
    idle: number;
    stranded: number;
    share: number;
    unusable: number;
    unusable_share: number;
    shapes: number;
    pods: number;
  }

  /** The resource version after a snapshot was restored. */
  interface Restored {
    revision: number;
  }

  /** The server that responds. */
  interface Root {
    version: string;
    kubernetes_version: string;
    build: string;
    instance: string;
    started_at: string;
    links: Record<string, string>;
  }

  /** Why a pod fits on no node. */
  interface RootCause {
    plugin: string;
    summary: string;
    headline: string;
    everywhere: string[];
    sole: SoleFilter[];
    usable: number;
    nodes: number;
    is_misspelt: boolean;
  }

  /** One attempt with one object per node. */
  interface RowMatrix {
    form: "rows";
    number: number;
    recorded: true;
    record_level: string;
    nodes: number;
    counts: MatrixCounts;
    winner: string;
    runner_up: string;
    margin: number | null;
    tie_set: string[];
    pre_filters: string[];
    filters: string[];
    scorers: MatrixScorer[];
    statuses: MatrixStatus[];
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    attempt: number;
    summary: string;
    skipped: string[];
    max_score: number;
    points: MatrixPoints;
    annotated?: boolean;
    rows: MatrixRow[];
  }

  /** All facts about one run. Times are nanoseconds of virtual time since 1970. */
  interface RunFacts {
    format: number;
    version: string;
    kubernetes: string;
    seed: number;
    digest: string;
    start_ns: number;
    end_ns: number;
    stopped: string;
    missing_plugins: string[];
    custom_plugins: string[] | null;
    instants: number;
    events: number;
    pods: PodCounts;
    nodes: NodeCounts;
    decisions: DecisionCounts;
    pending: PendingFacts[];
    pending_groups: number;
    waits: WaitFacts;
    still_waiting: WaitFacts;
    attempts: AttemptFacts;
    utilisation: UtilisationFacts[];
    fragmentation: FragmentationFacts;
    node_groups: GroupCost[];
    descheduled: number;
    input: InputFacts;
  }

  /** The scheduler names of the profiles, and the failures of plugins. */
  interface SchedulerStatus {
    profiles: string[];
    plugins_failed: FailedPlugin[];
  }

  /** The nodes that one more pod of a shape would fit, and the idle amounts on them. */
  interface ShapeFacts {
    example: string;
    pods: number;
    waiting: number;
    requests: Record<string, number>;
    allowed: number;
    fits: number;
    idle: Record<string, number>;
    idle_on_one: Record<string, number>;
  }

  /** All snapshots. */
  interface SnapshotList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: SnapshotRow[];
  }

  /** The name for a new snapshot. */
  interface SnapshotName {
    name: string;
  }

  /** A snapshot of the cluster. `revision` is the resource version at which it was taken. */
  interface SnapshotRow {
    name: string;
    taken_at: string;
    revision: number;
  }

  /** A filter that alone rejects some nodes: without it, the pod would fit on them. `nodes` is their number. */
  interface SoleFilter {
    plugin: string;
    nodes: number;
  }

  /** The number of objects written to this cluster, and of those that wait to be written. */
  interface SourceCounts {
    created: number;
    updated: number;
    deleted: number;
    waiting: number;
  }

  /** A source cluster of this cluster, in short. */
  interface SourceFacts {
    name: string;
    kind: string;
    state: string;
    lag_seconds: number;
    summary: string;
  }

  /** The source clusters of this cluster; at most one. */
  interface SourceList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: SourceRow[];
  }

  /** A source cluster of this cluster. */
  interface SourceRow {
    name: string;
    kind: string;
    state: string;
    lag_seconds: number;
    summary: string;
    address: string;
    position: string | null;
    policies: Record<string, string>;
    counts: SourceCounts;
    message: string;
    left_out: string[];
  }

  /** Whether to step by one decision or to the next event. */
  interface Step {
    by?: "decision" | "event";
  }

  /** One way to get a pod placed, verified in a fork: the scheduler placed the pod. */
  interface Suggestion {
    rank: number;
    kind: string;
    text: string;
    risk: string;
    cost: number;
    node: string;
    placed: number;
    waiting: number;
    moved: Placement[];
    evicted: string[];
    commands: string[];
    objects: Record<string, unknown>[];
    deleted: string[];
    ended: string[];
  }

  /** Why a pod, or the pods of a workload, wait, and suggestions to get them placed. */
  interface Unblocking {
    verdict: string;
    pods: string[];
    waiting: string[];
    fits: boolean;
    cause: RootCause | null;
    suggestions: Suggestion[];
    trials: number;
    limits: string[];
    assumptions: string[];
  }

  /** The utilisation of the cluster at one time, as fractions of 1. */
  interface UsagePoint {
    at: string;
    cpu: number;
    memory: number;
  }

  /** The utilisation of one resource, in the whole cluster (zone "") or in a zone. */
  interface UsageRow {
    resource: string;
    zone: string;
    nodes: number;
    allocatable: number;
    requested: number;
    share: number;
    free: number;
    largest_gap: number;
  }

  /** One resource, in the whole cluster or in one zone. Amounts are in units of the state: milli-CPU, bytes, counts. */
  interface UtilisationFacts {
    resource: string;
    zone: string | null;
    nodes: number;
    allocatable: number;
    requested: number;
    share: number;
    mean_share: number;
    peak_share: number;
    peak_requested: number;
    peak_ns: number;
  }

  /** The errors of a configuration, or what applying it would change. */
  interface Validation {
    stage: string | null;
    problems: ConfigurationProblem[];
    effective: Record<string, unknown> | null;
    extension_points?: Record<string, Record<string, PointPlugin[]>>;
    difference: string[];
    effect: string;
  }

  /** A pod to preempt. `started_ns` is the time since the start of the run; None if the pod has not started. */
  interface Victim {
    pod: string;
    priority: number;
    started_ns: number | null;
  }

  /** A pod that was evicted for a copy. */
  interface VictimRow {
    pod: string;
    node: string;
    preemptor: string;
    priority: number;
    controller: string;
    new_node: string;
  }

  /** Statistics of waiting times, in nanoseconds of virtual time; all 0 if there are no pods. */
  interface WaitFacts {
    pods: number;
    median_ns: number;
    p95_ns: number;
    max_ns: number;
  }

  /** The number of pods by waiting time: up to each bound in seconds; the last number is for pods beyond all bounds. */
  interface WaitHistogram {
    seconds: number[];
    pods: number[];
  }

  /** A reason why pods fit nowhere. */
  interface WaitingReason {
    plugin: string;
    sole_pods: number;
    pods: number;
    summary: string;
    examples: string[];
  }

  /** Why pods wait, sorted by the number of pods that have no other reason. */
  interface WaitingReasons {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: WaitingReason[];
    summary: string;
    evaluated: number;
    waiting: number;
    assumptions: string[];
  }

  /** A warning about the input: its kind, file and line, object, problem and suggestion ("" for none). */
  interface WarningFacts {
    kind: string;
    where: string;
    what: string;
    problem: string;
    hint: string;
  }

  /** The stored what-if answers, the oldest first. */
  interface WhatIfList {
    total: number;
    total_is_exact: boolean;
    offset: number;
    limit: number;
    items: WhatIfSummary[];
  }

  /** The effects of changes. */
  interface WhatIfReport {
    id: string;
    fork: string;
    name: string;
    at: string;
    changes: string[];
    configuration: string | null;
    reschedule: string[];
    summary: string;
    effect: string;
    pods: number;
    counts: Record<string, number>;
    differences: PodDifference[];
    left_out: number;
    measures: Measure[];
    evictions: Eviction[];
    warnings: string[];
    assumptions: string[];
  }

  /** The changes to try. */
  interface WhatIfRequest {
    changes?: string[];
    config?: string | null;
    objects?: Record<string, unknown>[];
    reschedule?: string[];
    name?: string;
    keep?: boolean;
  }

  /** A stored what-if answer in the list. */
  interface WhatIfSummary {
    id: string;
    name: string;
    at: string;
    changes: string[];
    summary: string;
  }

  /** The number of further copies of one workload that fit. */
  interface WorkloadCapacity {
    workload: string;
    copies: number;
    share: number;
  }

  /** All operations by method and path. */
  interface Operations {
    "GET /": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: Root;
    };
    "GET /overview": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: Overview;
    };
    "GET /nodes": {
      parameters: { q?: string | null; zone?: string | null; pool?: string | null; label?: string | null; state?: string | null; run?: string | null; sort?: string | null; offset?: number | string | null; limit?: number | string | null; facets?: boolean; blocks?: boolean; };
      body: undefined;
      answer: NodeList;
    };
    "GET /nodes/cells": {
      parameters: { metric?: string | null; by?: string | null; q?: string | null; zone?: string | null; pool?: string | null; label?: string | null; state?: string | null; run?: string | null; };
      body: undefined;
      answer: Cells;
    };
    "GET /nodes/lanes": {
      parameters: { q?: string | null; from_at?: string | null; to_at?: string | null; bins?: number | string | null; offset?: number | string | null; limit?: number | string | null; };
      body: undefined;
      answer: NodeLanes;
    };
    "GET /nodes/{name}": {
      parameters: { name: string; offset?: number | string | null; limit?: number | string | null; };
      body: undefined;
      answer: NodePage;
    };
    "POST /nodes/{name}/drain": {
      parameters: { name: string; };
      body: undefined;
      answer: Drained;
    };
    "GET /pods": {
      parameters: { q?: string | null; status?: string | null; reason?: string | null; namespace?: string | null; node?: string | null; priority?: number | string | null; workload?: string | null; sort?: string | null; offset?: number | string | null; limit?: number | string | null; facets?: boolean; run?: string | null; };
      body: undefined;
      answer: PodList;
    };
    "GET /pods/{namespace}/{name}": {
      parameters: { namespace: string; name: string; run?: string | null; };
      body: undefined;
      answer: PodPage;
    };
    "GET /pods/{namespace}/{name}/attempts": {
      parameters: { namespace: string; name: string; offset?: number | string | null; limit?: number | string | null; run?: string | null; };
      body: undefined;
      answer: AttemptList;
    };
    "GET /pods/{namespace}/{name}/attempts/{attempt}/matrix": {
      parameters: { namespace: string; name: string; attempt: string; sort?: string | null; only?: string | null; q?: string | null; offset?: number | string | null; limit?: number | string | null; form?: string | null; exhaustive?: boolean; run?: string | null; };
      body: undefined;
      answer: RowMatrix | ColumnMatrix | NoMatrix;
    };
    "GET /pods/{namespace}/{name}/attempts/{attempt}/preemption": {
      parameters: { namespace: string; name: string; attempt: string; run?: string | null; };
      body: undefined;
      answer: PreemptionReport | null;
    };
    "GET /pods/{namespace}/{name}/explanation": {
      parameters: { namespace: string; name: string; attempt?: number | string | null; node?: string | null; best?: number | string | null; run?: string | null; };
      body: undefined;
      answer: Explanation;
    };
    "POST /pods/{namespace}/{name}/retry": {
      parameters: { namespace: string; name: string; };
      body: undefined;
      answer: Moved;
    };
    "GET /explain": {
      parameters: { workload?: string | null; node?: string | null; best?: number | string | null; };
      body: undefined;
      answer: Explanation;
    };
    "GET /unblock": {
      parameters: { workload?: string | null; };
      body: undefined;
      answer: Unblocking;
    };
    "GET /capacity": {
      parameters: { workload?: string | null; preempt?: boolean; limit?: number | string | null; seeds?: number | string | null; };
      body: undefined;
      answer: Capacity;
    };
    "GET /waiting": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: WaitingReasons;
    };
    "POST /what-if": {
      parameters: { [name: string]: never };
      body: WhatIfRequest | undefined;
      answer: WhatIfReport;
    };
    "GET /what-if": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: WhatIfList;
    };
    "GET /what-if/{id}": {
      parameters: { id: string; };
      body: undefined;
      answer: WhatIfReport;
    };
    "DELETE /what-if/{id}": {
      parameters: { id: string; };
      body: undefined;
      answer: WhatIfList;
    };
    "GET /decisions": {
      parameters: { after?: number | string | null; before?: number | string | null; pod?: string | null; outcome?: string | null; node?: string | null; limit?: number | string | null; run?: string | null; };
      body: undefined;
      answer: DecisionList;
    };
    "GET /decisions/density": {
      parameters: { from?: number | string | null; to?: number | string | null; from_at?: string | null; to_at?: string | null; bins?: number | string | null; axis?: string | null; };
      body: undefined;
      answer: Density;
    };
    "GET /queue": {
      parameters: { tier?: string | null; offset?: number | string | null; limit?: number | string | null; };
      body: undefined;
      answer: QueueList;
    };
    "POST /queue/flush": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: Moved;
    };
    "GET /clock": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: ClockStatus;
    };
    "PUT /clock": {
      parameters: { [name: string]: never };
      body: ClockChange | undefined;
      answer: ClockStatus;
    };
    "POST /clock/step": {
      parameters: { [name: string]: never };
      body: Step | undefined;
      answer: ClockStep;
    };
    "GET /config": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: Configuration;
    };
    "PUT /config": {
      parameters: { [name: string]: never };
      body: string | Record<string, unknown>;
      answer: Configuration;
    };
    "GET /config/default": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: DefaultConfiguration;
    };
    "POST /config/validate": {
      parameters: { [name: string]: never };
      body: string | Record<string, unknown>;
      answer: Validation;
    };
    "GET /plugins": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: PluginList;
    };
    "POST /plugins/reload": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: PluginList;
    };
    "GET /snapshots": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: SnapshotList;
    };
    "POST /snapshots": {
      parameters: { [name: string]: never };
      body: SnapshotName | undefined;
      answer: SnapshotRow;
    };
    "DELETE /snapshots/{name}": {
      parameters: { name: string; };
      body: undefined;
      answer: SnapshotList;
    };
    "POST /snapshots/{name}/restore": {
      parameters: { name: string; };
      body: undefined;
      answer: Restored;
    };
    "POST /reset": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: Restored;
    };
    "GET /forks": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: ForkList;
    };
    "POST /forks": {
      parameters: { [name: string]: never };
      body: ForkRequest | undefined;
      answer: ForkStatus;
    };
    "GET /forks/{id}": {
      parameters: { id: string; };
      body: undefined;
      answer: ForkStatus;
    };
    "DELETE /forks/{id}": {
      parameters: { id: string; };
      body: undefined;
      answer: ForkList;
    };
    "GET /compare": {
      parameters: { a?: string | null; b?: string | null; kind?: string | null; offset?: number | string | null; limit?: number | string | null; };
      body: undefined;
      answer: Comparison;
    };
    "GET /compare/pods/{namespace}/{name}": {
      parameters: { namespace: string; name: string; a?: string | null; b?: string | null; };
      body: undefined;
      answer: PodComparison;
    };
    "GET /placements": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: Placements;
    };
    "POST /apply": {
      parameters: { [name: string]: never };
      body: ApplyRequest | undefined;
      answer: Applied;
    };
    "POST /objects": {
      parameters: { objects?: boolean; };
      body: string | { items?: Record<string, unknown>[] };
      answer: Batch;
    };
    "GET /export": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: Exported;
    };
    "POST /import": {
      parameters: { replace?: boolean; };
      body: { items?: Record<string, unknown>[]; configuration?: string };
      answer: Imported;
    };
    "GET /sources": {
      parameters: { [name: string]: never };
      body: undefined;
      answer: SourceList;
    };
  }

  /** The data of the stream's frames by topic. */
  interface Topics {
    overview: Overview;
    pods: PodsChanged;
    queue: QueueChanged;
    clock: ClockStatus;
    decisions: DecisionsChanged;
    [topic: `nodes:${string}`]: CellsChanged;
    [topic: `pod:${string}/${string}`]: PodChanged;
  }

  /** The operations that read: parameters and responses by path. */
  type Gets = { [K in keyof Operations as K extends `GET ${infer P}` ? P : never]: Operations[K] };

  /** The operations that write. */
  type Writes = Exclude<keyof Operations, `GET ${string}`>;
}

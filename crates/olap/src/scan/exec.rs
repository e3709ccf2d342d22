//! The scan's execution plan: chunks of a snapshot, filtered and projected, as record batches.
//!
//! Responsible for: sharing chunks among partitions (all draw from one counter, so that a slow
//! partition takes fewer), skipping chunks by zone maps and dynamic filters, handing out whole
//! chunks without copying. Not responsible for: finding the snapshot ([`super::provider`]).
//! A dynamic filter (a join's build side, a TopK) prunes chunks, and rows only where it names few values of a column
//! ([`super::members`]): the operator that made it checks each row anyway, and checking twice made every query slower.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use albireo_base::ColumnId;
use albireo_base::ids::CHUNK_ROWS;
use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_expr_common::physical_expr::{snapshot_generation, snapshot_physical_expr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::Stream;

use super::ahead::Turn;
use super::computed::Computed;
use super::gather::{self, Gatherer, Selection};
use super::joined_texts::JoinedTexts;
use super::kept::{KeptReader, Question};
use super::masks::MaskReader;
use super::members::Members;
use super::predicate::{Around, Predicate, Test, Verdict};
use super::rows::materialize;
use super::sums::{Adding, ChunkSums, Part};
use super::text_ids::TextIds;
use super::zones::{self, Zone, ZoneReader};
use super::{Caches, text_ids};
use crate::context::QueryContext;
use crate::errors::{cancelled, external, internal};
use crate::relation::{ChunkData, Relation, RelationData};

/// What a scan reads and keeps.
#[derive(Clone)]
pub(crate) struct ScanSpec {
    pub(crate) relation: Arc<Relation>,
    pub(crate) data: Arc<dyn RelationData>,
    pub(crate) query: Arc<QueryContext>,
    pub(crate) caches: Caches,
    /// Columns delivered, in order.
    pub(crate) projection: Vec<ColumnId>,
    /// The relation's whole schema.
    pub(crate) table_schema: SchemaRef,
    /// Filters of our own kinds, all of which must hold.
    pub(crate) predicates: Vec<Predicate>,
    /// Filters that were one of ours before their parameters were known, and are none any more.
    pub(crate) others: Vec<Computed>,
    /// Readable form of all filters, for EXPLAIN.
    pub(crate) filters_text: String,
    /// Rows after which a partition may stop.
    pub(crate) limit: Option<usize>,
    /// Rows expected; exact without filters.
    pub(crate) estimated_rows: Precision<usize>,
    /// Whether most chunks have to be fetched.
    pub(crate) is_away: bool,
    /// Rows of a batch between operators.
    pub(crate) batch_rows: usize,
    /// Of the columns delivered, those that are only summed, by all others: rows that differ in them
    /// alone may become one with the sum. Empty: rows are delivered as they are.
    pub(crate) sums: Vec<usize>,
    /// Of the columns delivered, those of texts that are delivered as numbers ([`super::text_ids`]).
    pub(crate) ids: Vec<usize>,
    /// Whose numbers these are; `None`: those of each partition.
    pub(crate) joined: Option<Arc<JoinedTexts>>,
}

impl ScanSpec {
    /// The schema of what is delivered.
    fn schema(&self) -> Result<SchemaRef> {
        let indices: Vec<usize> = self.projection.iter().map(|c| c.index()).collect();
        let schema = self.table_schema.project(&indices)?;
        Ok(text_ids::schema_with(schema, &self.ids))
    }

    /// The columns that are read of a chunk for which zones leave these predicates open.
    pub(super) fn columns_read(&self, open: &[&Predicate]) -> BTreeSet<ColumnId> {
        let mut columns: BTreeSet<ColumnId> = self.projection.iter().copied().collect();
        open.iter().for_each(|predicate| predicate.columns(&mut columns));
        columns.extend(self.others.iter().flat_map(Computed::columns));
        columns
    }
}

/// The plan node.
pub(crate) struct ScanExec {
    pub(super) spec: Arc<ScanSpec>,
    pub(super) dynamic: Vec<Arc<dyn PhysicalExpr>>,
    next_chunk: Arc<AtomicUsize>,
    /// What is kept of the answer, once the first partition has asked.
    kept: Arc<OnceLock<Option<Arc<KeptReader>>>>,
    pub(super) properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ScanExec {
    pub(crate) fn try_new(spec: ScanSpec, partitions: usize) -> Result<Self> {
        let schema = spec.schema()?;
        let partitions = partitions.min(spec.data.chunk_count()).max(1);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            spec: Arc::new(spec),
            dynamic: Vec::new(),
            next_chunk: Arc::default(),
            kept: Arc::default(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The least and greatest value of a delivered column in all chunks, filtered rows and dead slots
    /// included. `None`: the column has no zones, or no values.
    pub(crate) fn column_range(&self, index: usize) -> Option<(i64, i64)> {
        let spec = &self.spec;
        let column = *spec.projection.get(index)?;
        let ty = spec.table_schema.field(column.index()).data_type();
        if !zones::has_zones(ty) {
            return None;
        }
        let reader = spec.caches.zones.column(spec.relation.id, column);
        let mut range: Option<(i64, i64)> = None;
        for i in 0..spec.data.chunk_count() {
            // A chunk without a zone is one whose values are not known.
            if let Some((min, max)) = reader.zone(i, &*spec.data.chunk(i), ty)?.range {
                range = Some(range.map_or((min, max), |(a, b)| (a.min(min), b.max(max))));
            }
        }
        range
    }

    /// What the scan reads.
    pub(crate) fn spec(&self) -> &ScanSpec {
        &self.spec
    }

    /// Whether most chunks are encoded.
    pub(crate) fn is_encoded(&self) -> bool {
        self.spec.projection.first().is_some_and(|column| self.spec.data.is_encoded(*column))
    }

    pub(super) fn delivers_no_nulls(&self) -> bool {
        self.schema().fields().iter().all(|field| !field.is_nullable())
    }

    /// What is kept of the answer to this scan's question, if it can be and is asked again.
    fn ask(&self) -> Option<Arc<KeptReader>> {
        let spec = &self.spec;
        if spec.predicates.is_empty() || !spec.others.is_empty() || !self.delivers_no_nulls() {
            return None;
        }
        let mut columns: BTreeSet<ColumnId> = spec.projection.iter().copied().collect();
        let mut filters = Vec::new();
        for predicate in &spec.predicates {
            predicate.write(&mut filters)?;
            predicate.columns(&mut columns);
        }
        let (projection, sums) = (spec.projection.clone(), spec.sums.clone());
        let question = Question { table: spec.relation.id, projection, filters, sums };
        spec.caches.kept.ask(question, columns.into_iter().collect()).map(Arc::new)
    }

    /// The same scan from its start, with other dynamic filters.
    pub(super) fn fresh(&self, dynamic: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        Self {
            spec: Arc::clone(&self.spec),
            dynamic,
            next_chunk: Arc::default(),
            kept: Arc::default(),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanExec").field("relation", &self.spec.relation.name).finish_non_exhaustive()
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = &self.spec;
        let name = |c: &ColumnId| spec.relation.columns[c.index()].name.as_str();
        let columns: Vec<&str> = spec.projection.iter().map(name).collect();
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "ScanExec: {}, columns=[{}]", spec.relation.name, columns.join(", "))?;
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "{}", spec.relation.name)?;
                write!(f, "columns={}", columns.join(", "))?;
            }
        }
        if !spec.filters_text.is_empty() {
            write!(f, ", filters=[{}]", spec.filters_text)?;
        }
        if !self.dynamic.is_empty() {
            write!(f, ", prunes_by_dynamic_filters={}", self.dynamic.len())?;
        }
        if let Some(limit) = spec.limit {
            write!(f, ", limit={limit}")?;
        }
        if !spec.sums.is_empty() {
            let sums: Vec<&str> = spec.sums.iter().map(|&i| name(&spec.projection[i])).collect();
            write!(f, ", sums=[{}]", sums.join(", "))?;
        }
        if !spec.ids.is_empty() {
            let ids: Vec<&str> = spec.ids.iter().map(|&i| name(&spec.projection[i])).collect();
            write!(f, ", ids=[{}]", ids.join(", "))?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in &self.dynamic {
            if f(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { Err(external(internal("a scan has no inputs"))) }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { Err(external(internal("a scan has no inputs"))) }
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(ScanStream::new(self, partition)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let schema = self.schema();
        let mut rows = self.spec.estimated_rows;
        if args.partition().is_some() {
            let partitions = self.properties.partitioning.partition_count();
            rows = rows.map(|rows| rows.div_ceil(partitions)).to_inexact();
        }
        let width: usize = schema.fields().iter().map(|f| width_bytes(f.data_type())).sum();
        Ok(Arc::new(Statistics {
            num_rows: rows,
            total_byte_size: rows.map(|rows| rows * width).to_inexact(),
            column_statistics: vec![ColumnStatistics::new_unknown(); schema.fields().len()],
        }))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.fresh(self.dynamic.clone())))
    }

    fn fetch(&self) -> Option<usize> {
        self.spec.limit
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let mut dynamic = self.dynamic.clone();
        if phase == FilterPushdownPhase::Post {
            let pushed = child_pushdown_result.parent_filters.iter().map(|p| &p.filter);
            // What is known of numbers says nothing of texts.
            let of_ids = |f: &Arc<dyn PhysicalExpr>| {
                collect_columns(f).iter().any(|column| self.spec.ids.contains(&column.index()))
            };
            let pushed = pushed.filter(|f| f.is::<DynamicFilterPhysicalExpr>() && !of_ids(f));
            dynamic.extend(pushed.map(Arc::clone));
        }
        let answer = FilterPushdownPropagation::all_unsupported(child_pushdown_result);
        if dynamic.len() == self.dynamic.len() {
            return Ok(answer);
        }
        Ok(answer.with_updated_node(Arc::new(self.fresh(dynamic))))
    }
}

/// Bytes a value takes in a batch, roughly for strings.
fn width_bytes(ty: &DataType) -> usize {
    ty.primitive_width().unwrap_or(match ty {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(n) => usize::try_from(*n).unwrap_or(16),
        _ => 32,
    })
}

/// What dynamic filters say at the moment about chunks.
struct DynamicPruning {
    filters: Vec<DynamicFilter>,
}

struct DynamicFilter {
    filter: Arc<dyn PhysicalExpr>,
    /// Which of its states was read.
    generation: u64,
    predicate: Option<Predicate>,
    members: Option<Members>,
}

impl DynamicPruning {
    fn new(filters: &[Arc<dyn PhysicalExpr>]) -> Self {
        // No filter has this generation, so the first look reads it.
        let unread = |f: &Arc<dyn PhysicalExpr>| DynamicFilter {
            filter: Arc::clone(f),
            generation: u64::MAX,
            predicate: None,
            members: None,
        };
        Self { filters: filters.iter().map(unread).collect() }
    }

    /// Reads the filters that have changed since the last look.
    fn refresh(&mut self, spec: &ScanSpec) {
        for known in &mut self.filters {
            let generation = snapshot_generation(&known.filter);
            if generation == known.generation {
                continue;
            }
            known.generation = generation;
            let (projection, schema) = (&spec.projection, &spec.table_schema);
            let now = snapshot_physical_expr(Arc::clone(&known.filter)).ok();
            known.predicate = now.as_ref().and_then(|e| Predicate::read_physical(e, projection, schema));
            known.members = now.as_ref().and_then(|e| Members::read(&**e, projection, schema));
        }
    }

    fn members(&mut self) -> impl Iterator<Item = &mut Members> {
        self.filters.iter_mut().filter_map(|known| known.members.as_mut())
    }

    fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        self.filters.iter().filter_map(|known| known.predicate.as_ref())
    }
}

/// Zones of the columns that are asked for.
struct Zones {
    readers: Vec<Option<ZoneReader>>,
}

impl Zones {
    fn verdict(
        &mut self,
        predicate: &Predicate,
        spec: &ScanSpec,
        i: usize,
        chunk: &dyn ChunkData,
    ) -> Verdict {
        predicate.verdict(&mut |column| self.zone(column, spec, i, chunk))
    }

    fn zone(&mut self, column: ColumnId, spec: &ScanSpec, i: usize, chunk: &dyn ChunkData) -> Option<Zone> {
        let ty = spec.table_schema.field(column.index()).data_type();
        if !zones::has_zones(ty) {
            return None;
        }
        let reader = self.readers[column.index()]
            .get_or_insert_with(|| spec.caches.zones.column(spec.relation.id, column));
        reader.zone(i, chunk, ty)
    }
}

/// Masks of the columns that are compared with constants.
struct Masks {
    readers: Vec<Option<MaskReader>>,
}

impl Masks {
    fn mask(
        &mut self,
        test: &Test,
        spec: &ScanSpec,
        (i, chunk): (usize, &dyn ChunkData),
        keeps: bool,
    ) -> std::result::Result<BooleanBuffer, ArrowError> {
        let Some(value) = test.raw else { return test.mask(chunk) };
        let reader = self.readers[test.column.index()]
            .get_or_insert_with(|| spec.caches.masks.column(spec.relation.id, test.column));
        reader.mask(i, chunk, (test.comparison, value), keeps, || test.mask(chunk))
    }
}

/// What a chunk gave.
enum ChunkRows {
    Nothing,
    /// Some rows, now with the gatherer.
    Gathered,
    Rows(RecordBatch),
    /// What they come to.
    Sums(ChunkSums),
}

/// One chunk of so many lets other tasks run.
const TURN_CHUNKS: usize = 32;

/// One partition's share of the chunks.
pub(super) struct ScanStream {
    pub(super) spec: Arc<ScanSpec>,
    schema: SchemaRef,
    pub(super) next_chunk: Arc<AtomicUsize>,
    pub(super) turn: Turn,
    dynamic: DynamicPruning,
    zones: Zones,
    masks: Masks,
    /// Rows of chunks that need not be read again.
    kept: Option<Arc<KeptReader>>,
    /// Gathers what is left of chunks that were mostly filtered away; `None` where the coalescer must.
    gatherer: Option<Gatherer>,
    pub(super) coalescer: BatchCoalescer,
    /// The numbers of texts, by column of [`ScanSpec::ids`].
    pub(super) ids: Vec<TextIds>,
    /// Adds up what is not wanted as rows.
    pub(super) adding: Option<Adding>,
    /// Other tasks are let run before the next chunk is read.
    is_turn_over: bool,
    /// Rows still wanted.
    wanted: usize,
    finished: bool,
    baseline: BaselineMetrics,
    pruned: Count,
    kept_chunks: Count,
    added_chunks: Count,
    /// Texts and rows for which expressions were evaluated.
    computed: Count,
    /// Rows that joins would have dropped.
    left_out: Count,
}

impl ScanStream {
    pub(super) fn new(exec: &ScanExec, partition: usize) -> Self {
        let schema = exec.schema();
        let gatherer = Gatherer::new(&exec.spec.projection, &schema, exec.spec.batch_rows);
        Self {
            spec: Arc::clone(&exec.spec),
            coalescer: BatchCoalescer::new(Arc::clone(&schema), exec.spec.batch_rows),
            schema,
            next_chunk: Arc::clone(&exec.next_chunk),
            turn: Turn::of(exec.properties.partitioning.partition_count(), exec.spec.is_away),
            dynamic: DynamicPruning::new(&exec.dynamic),
            zones: Zones { readers: vec![None; exec.spec.relation.columns.len()] },
            masks: Masks { readers: vec![None; exec.spec.relation.columns.len()] },
            kept: gatherer.as_ref().and_then(|_| exec.kept.get_or_init(|| exec.ask()).clone()),
            gatherer,
            ids: exec.spec.ids.iter().map(|&index| TextIds::new(index, exec.spec.joined.clone())).collect(),
            adding: None,
            is_turn_over: true,
            wanted: exec.spec.limit.unwrap_or(usize::MAX),
            finished: false,
            baseline: BaselineMetrics::new(&exec.metrics, partition),
            pruned: MetricBuilder::new(&exec.metrics).counter("chunks_pruned", partition),
            kept_chunks: MetricBuilder::new(&exec.metrics).counter("chunks_kept", partition),
            added_chunks: MetricBuilder::new(&exec.metrics).counter("chunks_added", partition),
            computed: MetricBuilder::new(&exec.metrics).counter("values_computed", partition),
            left_out: MetricBuilder::new(&exec.metrics).counter("rows_left_out", partition),
        }
    }

    /// Lets other tasks of this thread run, before the first chunk and now and then. No other thread can take the one that this
    /// one has woken last: when the side that a join is built of had been read, the scan that probes in the other partition
    /// waited until this one had read all chunks, and all threads but one slept. Joins over 3 million rows take half as long.
    pub(super) fn poll_turn(&mut self, context: &Context<'_>) -> Poll<()> {
        if !std::mem::take(&mut self.is_turn_over) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// The next part, measured.
    pub(super) fn timed_part(&mut self) -> Result<Option<Part>> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let timer = elapsed.timer();
        let part = self.next_part();
        timer.done();
        self.baseline.record_output(match &part {
            Ok(Some(Part::Rows(batch))) => batch.num_rows(),
            Ok(Some(Part::Sums(sums))) => sums.rows.len(),
            _ => 0,
        });
        part
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.next_part()? {
            Some(Part::Rows(batch)) => Ok(Some(batch)),
            Some(Part::Sums(_)) => Err(external(internal("sums were not asked for"))),
            None => Ok(None),
        }
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        while self.wanted > 0 {
            if let Some(batch) = self.coalescer.next_completed_batch() {
                return Ok(Some(self.limited(batch)));
            }
            if self.finished {
                return Ok(None);
            }
            if self.spec.query.is_cancelled() {
                return Err(external(cancelled()));
            }
            let Some(i) = self.take_chunk() else {
                self.finished = true;
                self.coalescer.finish_buffered_batch()?;
                let Some(batch) = self.gathered(1)? else { continue };
                return Ok(Some(self.limited(batch)));
            };
            match self.read_chunk(i)? {
                ChunkRows::Nothing => {}
                ChunkRows::Gathered => {
                    if let Some(batch) = self.gathered(self.spec.batch_rows.min(self.wanted))? {
                        return Ok(Some(self.limited(batch)));
                    }
                }
                ChunkRows::Sums(sums) => {
                    self.added_chunks.add(1);
                    return Ok(Some(Part::Sums(sums)));
                }
                ChunkRows::Rows(batch) => {
                    let enough = (self.spec.batch_rows / 2).min(self.wanted);
                    if batch.num_rows() >= enough || batch.num_columns() == 0 {
                        return Ok(Some(self.limited(batch)));
                    }
                    self.coalescer.push_batch(batch)?;
                    if self.coalescer.get_buffered_rows() >= self.wanted {
                        self.coalescer.finish_buffered_batch()?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// The rows gathered, once there are so many.
    fn gathered(&mut self, enough: usize) -> Result<Option<RecordBatch>> {
        match &mut self.gatherer {
            Some(gatherer) if gatherer.rows() >= enough => gatherer.take(),
            _ => Ok(None),
        }
    }

    fn limited(&mut self, batch: RecordBatch) -> Part {
        let rows = batch.num_rows().min(self.wanted);
        self.wanted -= rows;
        Part::Rows(if rows < batch.num_rows() { batch.slice(0, rows) } else { batch })
    }

    /// The rows of chunk `i` that pass.
    fn read_chunk(&mut self, i: usize) -> Result<ChunkRows> {
        albireo_env::give_way();
        self.is_turn_over = i.is_multiple_of(TURN_CHUNKS);
        let spec = Arc::clone(&self.spec);
        let chunk = spec.data.chunk(i);
        let chunk = &*chunk;
        if chunk.slots() == 0 {
            return Ok(ChunkRows::Nothing);
        }
        let live = chunk.live();
        let live_rows = live.as_ref().map_or(chunk.slots(), BooleanBuffer::count_set_bits);
        if live_rows == 0 {
            self.pruned.add(1);
            return Ok(ChunkRows::Nothing);
        }
        // What is kept holds for full chunks without dead rows.
        let kept = self.kept.clone().filter(|_| live.is_none() && chunk.slots() == CHUNK_ROWS);
        if let (Some(kept), Some(gatherer)) = (&kept, &mut self.gatherer)
            && let Some(rows) = kept.find(i, chunk)
        {
            self.kept_chunks.add(1);
            gatherer.add(&rows);
            return Ok(ChunkRows::Gathered);
        }
        let Some(open) = self.undecided(i, chunk, &spec) else {
            self.pruned.add(1);
            return Ok(ChunkRows::Nothing);
        };
        if let Some(sums) = self.known_sums(chunk, &open, live_rows) {
            return Ok(ChunkRows::Sums(sums));
        }
        if chunk.is_away() {
            chunk.fetch(&spec.columns_read(&open), &mut self.turn.ahead).map_err(external)?;
        }
        let mut mask = live;
        for predicate in open {
            let masks = &mut |test: &Test| self.masks.mask(test, &spec, (i, chunk), kept.is_none());
            let mut around = Around { masks, computed: &self.computed };
            let passed = predicate.mask(chunk, mask.as_ref(), &mut around)?;
            let passed = mask.map_or_else(|| passed.clone(), |m| &m & &passed);
            if passed.count_set_bits() == 0 {
                if let Some(kept) = kept {
                    kept.store(i, chunk, Selection::none());
                }
                return Ok(ChunkRows::Nothing);
            }
            mask = Some(passed);
        }
        // What is kept is the answer to another question.
        if kept.is_none() {
            mask = self.joined((i, chunk), mask);
        }
        for other in &spec.others {
            let passed = other.mask(chunk, mask.as_ref(), &self.computed)?;
            mask = Some(mask.map_or_else(|| passed.clone(), |m| &m & &passed));
        }
        self.deliver((i, chunk), mask, kept)
    }

    /// Those rows of `mask` of a chunk that joins may have.
    fn joined(
        &mut self,
        (i, chunk): (usize, &dyn ChunkData),
        mut mask: Option<BooleanBuffer>,
    ) -> Option<BooleanBuffer> {
        for members in self.dynamic.members() {
            let zone = self.zones.zone(members.column(), &self.spec, i, chunk);
            let Some(range) = zone.and_then(|zone| zone.range) else { continue };
            if members.pays(members.count_in(range), range) {
                let before = mask.as_ref().map_or(chunk.slots(), BooleanBuffer::count_set_bits);
                let found = members.mask(chunk, mask.as_ref());
                self.left_out.add(before - found.count_set_bits());
                mask = Some(found);
            }
        }
        mask
    }

    /// The rows of `mask` of a chunk; they are kept if there is a reader for that.
    fn deliver(
        &mut self,
        (i, chunk): (usize, &dyn ChunkData),
        mask: Option<BooleanBuffer>,
        kept: Option<Arc<KeptReader>>,
    ) -> Result<ChunkRows> {
        let spec = Arc::clone(&self.spec);
        let selected = mask.as_ref().map_or(chunk.slots(), BooleanBuffer::count_set_bits);
        if let Some(gatherer) = self.gatherer.as_mut().filter(|_| selected > 0 && !spec.sums.is_empty())
            && let Some(rows) = gatherer.sums_of_runs(chunk, mask.as_ref(), &spec.sums)
        {
            gatherer.add(&rows);
            kept.inspect(|kept| kept.store(i, chunk, rows));
            return Ok(ChunkRows::Gathered);
        }
        if let Some(adding) = self.adding.as_mut().filter(|_| kept.is_none() || !KeptReader::keeps(selected))
            && let Some(sums) = adding.add(chunk, mask.as_ref(), selected)
        {
            return Ok(if selected == 0 { ChunkRows::Nothing } else { ChunkRows::Sums(sums) });
        }
        match (mask, &mut self.gatherer) {
            _ if selected == 0 => Ok(ChunkRows::Nothing),
            (Some(mask), Some(gatherer)) if gather::is_sparse(selected, chunk.slots()) => {
                let rows = gatherer.push(chunk, &mask, selected, &spec.sums)?;
                kept.inspect(|kept| kept.store(i, chunk, gatherer.tail(rows)));
                Ok(ChunkRows::Gathered)
            }
            (mask, _) => {
                Ok(ChunkRows::Rows(materialize(chunk, mask, selected, &spec, &self.schema, &mut self.ids)?))
            }
        }
    }

    /// What the rows of a chunk come to, for which some filters are open, if that is known without reading them.
    pub(super) fn known_sums(
        &self,
        chunk: &dyn ChunkData,
        open: &[&Predicate],
        live_rows: usize,
    ) -> Option<ChunkSums> {
        let adding = self.adding.as_ref().filter(|_| open.is_empty() && self.spec.others.is_empty())?;
        adding.known(chunk, live_rows)
    }

    /// The filters that zone maps do not decide for chunk `i`; `None`: no row passes.
    pub(super) fn undecided<'s>(
        &mut self,
        i: usize,
        chunk: &dyn ChunkData,
        spec: &'s ScanSpec,
    ) -> Option<Vec<&'s Predicate>> {
        self.dynamic.refresh(spec);
        for predicate in self.dynamic.predicates() {
            if self.zones.verdict(predicate, spec, i, chunk) == Verdict::None {
                return None;
            }
        }
        for members in self.dynamic.members() {
            let zone = self.zones.zone(members.column(), spec, i, chunk);
            if zone.and_then(|zone| zone.range).is_some_and(|range| members.count_in(range) == 0) {
                return None;
            }
        }
        let mut open = Vec::with_capacity(spec.predicates.len());
        for predicate in &spec.predicates {
            match self.zones.verdict(predicate, spec, i, chunk) {
                Verdict::None => return None,
                Verdict::Some => open.push(predicate),
                Verdict::All => {}
            }
        }
        Some(open)
    }
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        ready!(this.poll_turn(context));
        let elapsed = this.baseline.elapsed_compute().clone();
        let timer = elapsed.timer();
        let batch = this.next_batch().transpose();
        timer.done();
        this.baseline.record_poll(Poll::Ready(batch))
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

//! Parquet files for DataFusion, each checked before its decoders reserve what the file claims.
//!
//! Responsible for: that no footer, page index or page reaches a decoder unchecked, and no range beyond the file's end
//! is read. Not responsible for: what is plausible (`albireo_files::parquet`), reading.
//!
//! [`Checked`] is DataFusion's format with another reader of files. Footers and page indexes are checked once for each
//! statement, pages whenever they are fetched.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use albireo_files::parquet::{
    Implausible, Pages, TAIL_BYTES, check_column_index, check_footer, check_offset_index, check_row_groups,
    footer_range,
};
use albireo_files::{Damaged, guarded};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result, Statistics, internal_datafusion_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::file_format::{FileFormat, FileMeta};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use datafusion::parquet::file::reader::{ChunkReader, Length};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use bytes::{Buf, Bytes};

/// Parquet, as DataFusion reads it, checked.
#[derive(Default, Debug)]
pub(super) struct Checked {
    format: ParquetFormat,
    files: Arc<Files>,
}

/// The files that have been checked, for as long as a statement is kept.
#[derive(Default, Debug)]
struct Files(Mutex<HashMap<Path, (ObjectMeta, Arc<Layout>)>>);

/// What is where in a file.
struct Layout {
    metadata: ParquetMetaData,
    /// The columns of all row groups, by where they begin.
    chunks: Vec<Chunk>,
    /// No column's bytes are another's too, as is so in files that are sound.
    is_disjoint: bool,
}

struct Chunk {
    range: Range<u64>,
    group: usize,
    column: usize,
    /// Where the page index says that pages begin.
    offsets: Vec<u64>,
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}

impl Files {
    /// What is where in a file, whose footer and page index are sound.
    async fn layout(&self, store: &dyn ObjectStore, file: &ObjectMeta) -> ParquetResult<Arc<Layout>> {
        if let Some((checked, layout)) = self.0.lock().get(&file.location)
            && checked == file
        {
            return Ok(Arc::clone(layout));
        }
        let layout = Layout::read(store, file).await.map_err(|error| unreadable(&file.location, error))?;
        let layout = Arc::new(layout);
        self.0.lock().insert(file.location.clone(), (file.clone(), Arc::clone(&layout)));
        Ok(layout)
    }
}

impl Layout {
    async fn read(store: &dyn ObjectStore, file: &ObjectMeta) -> ParquetResult<Self> {
        let get = |range: Range<u64>| async move {
            let bytes = store.get_range(&file.location, range).await;
            bytes.map_err(|error| ParquetError::External(Box::new(error)))
        };
        let tail = get(file.size.saturating_sub(TAIL_BYTES)..file.size).await?;
        let footer = get(footer_range(&tail, file.size).map_err(implausible)?).await?;
        check_footer(&footer).map_err(implausible)?;
        let metadata = sound(|| ParquetMetaDataReader::decode_metadata(&footer))?;
        check_row_groups(&metadata, file.size).map_err(implausible)?;
        let indexes = indexes_of(&metadata, file.size)?;
        let index = if indexes.is_empty() { Bytes::new() } else { get(indexes.clone()).await? };
        let part = |range: Range<u64>| {
            index.slice((range.start - indexes.start) as usize..(range.end - indexes.start) as usize)
        };
        let mut chunks = Vec::new();
        for (number, group) in metadata.row_groups().iter().enumerate() {
            for (column, chunk) in group.columns().iter().enumerate() {
                if let Some(range) = column_index(chunk) {
                    check_column_index(&part(range)).map_err(implausible)?;
                }
                let offsets = match offset_index(chunk) {
                    Some(range) => check_offset_index(&part(range)).map_err(implausible)?,
                    None => Vec::new(),
                };
                let (start, length) = chunk.byte_range();
                chunks.push(Chunk { range: start..start + length, group: number, column, offsets });
            }
        }
        chunks.sort_by_key(|chunk| chunk.range.start);
        let is_disjoint = chunks.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start);
        Ok(Self { metadata, chunks, is_disjoint })
    }

    /// Checks the pages in bytes that were read from `start` on.
    fn check(&self, start: u64, bytes: Bytes) -> ParquetResult<()> {
        let range = start..start + bytes.len() as u64;
        let source = Arc::new(Fetched { start, bytes });
        let until = self.chunks.partition_point(|chunk| chunk.range.start <= start);
        let from = if self.is_disjoint { until.saturating_sub(1) } else { 0 };
        for chunk in self.chunks[from..until].iter().filter(|chunk| chunk.range.contains(&start)) {
            let group = self.metadata.row_group(chunk.group);
            let column: &ColumnChunkMetaData = group.column(chunk.column);
            let pages =
                Pages { source: &source, chunk: column, rows: group.num_rows(), range: range.clone() };
            let found = pages.check().map_err(implausible)?;
            // A decoder that goes by the page index begins to read where that says.
            let mut indexed = chunk.offsets.iter().filter(|offset| range.contains(offset));
            if indexed.any(|offset| found.binary_search(offset).is_err()) {
                let name = column.column_path().string();
                let text = format!("Column \"{name}\": its pages are not where the page index says.");
                return Err(ParquetError::General(text));
            }
        }
        Ok(())
    }
}

/// Where a column's values by page are; nowhere, if that is no place.
fn column_index(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    range_of(chunk.column_index_offset()?, chunk.column_index_length()?)
}

/// Where the places of a column's pages are; nowhere, if that is no place.
fn offset_index(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    range_of(chunk.offset_index_offset()?, chunk.offset_index_length()?)
}

fn range_of(start: i64, length: i32) -> Option<Range<u64>> {
    let start = u64::try_from(start).ok()?;
    Some(start..start.checked_add(u64::try_from(length).ok()?)?)
}

/// Where all page indexes lie.
fn indexes_of(metadata: &ParquetMetaData, file_bytes: u64) -> ParquetResult<Range<u64>> {
    let (mut start, mut end) = (u64::MAX, 0);
    for chunk in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        for range in column_index(chunk).into_iter().chain(offset_index(chunk)) {
            (start, end) = (start.min(range.start), end.max(range.end));
        }
    }
    if end > file_bytes {
        return Err(ParquetError::General("Its page index lies beyond the file's end.".to_owned()));
    }
    Ok(start.min(end)..end)
}

/// Bytes of a file.
struct Fetched {
    start: u64,
    bytes: Bytes,
}

impl Length for Fetched {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Fetched {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let length = self.len().saturating_sub(start) as usize;
        self.get_bytes(start, length).map(Buf::reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let range = start.checked_sub(self.start).map(|start| start as usize..start as usize + length);
        let range = range.filter(|range| range.end <= self.bytes.len());
        range.map(|range| self.bytes.slice(range)).ok_or_else(|| ParquetError::EOF("cut off".to_owned()))
    }
}

fn implausible(error: Implausible) -> ParquetError {
    ParquetError::General(error.to_string())
}

/// Names the file in what is wrong with it.
fn unreadable(path: &Path, error: ParquetError) -> ParquetError {
    let reason = match error {
        ParquetError::External(_) => return error,
        ParquetError::General(reason) => reason,
        other => other.to_string(),
    };
    ParquetError::External(Box::new(super::not_readable(&format!("/{path}"), reason)))
}

/// What a decoder makes of damaged bytes: an error, also where it panics.
fn sound<T>(decode: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    let damaged = |Damaged| Err(ParquetError::General("It is damaged.".to_owned()));
    guarded(decode).unwrap_or_else(damaged)
}

/// Makes readers that check what they read.
#[derive(Debug)]
struct Factory {
    readers: CachedParquetFileReaderFactory,
    store: Arc<dyn ObjectStore>,
    files: Arc<Files>,
}

impl ParquetFileReaderFactory for Factory {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let (files, store, meta) =
            (Arc::clone(&self.files), Arc::clone(&self.store), file.object_meta.clone());
        let reader = self.readers.create_reader(partition, file, metadata_size_hint, metrics)?;
        Ok(Box::new(Reader { reader, files, store, meta }))
    }
}

struct Reader {
    reader: Box<dyn AsyncFileReader + Send>,
    files: Arc<Files>,
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
}

impl Reader {
    /// Nobody allocates for a range that is not there.
    fn check_range(&self, range: &Range<u64>) -> ParquetResult<()> {
        if range.start <= range.end && range.end <= self.meta.size {
            return Ok(());
        }
        let error = ParquetError::General("It says that it has more bytes than are there.".to_owned());
        Err(unreadable(&self.meta.location, error))
    }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let mut bytes = self.get_byte_ranges(vec![range]).await?;
            bytes.pop().ok_or_else(|| ParquetError::EOF("nothing was read".to_owned()))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            ranges.iter().try_for_each(|range| self.check_range(range))?;
            let layout = self.files.layout(&self.store, &self.meta).await?;
            let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
            let bytes = self.reader.get_byte_ranges(ranges).await?;
            for (start, bytes) in starts.into_iter().zip(&bytes) {
                let checked = sound(|| layout.check(start, bytes.clone()));
                checked.map_err(|error| unreadable(&self.meta.location, error))?;
            }
            Ok(bytes)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            self.files.layout(&self.store, &self.meta).await?;
            self.reader.get_metadata(options).await
        }
        .boxed()
    }
}

impl Checked {
    async fn check(&self, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<()> {
        for file in files {
            self.files.layout(store, file).await.map_err(DataFusionError::from)?;
        }
        Ok(())
    }
}

#[async_trait]
impl FileFormat for Checked {
    fn get_ext(&self) -> String {
        self.format.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.format.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.format.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        self.check(store, objects).await?;
        self.format.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.check(store, std::slice::from_ref(object)).await?;
        self.format.infer_stats(state, store, table_schema, object).await
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        self.check(store, std::slice::from_ref(object)).await?;
        self.format.infer_ordering(state, store, table_schema, object).await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        self.check(store, std::slice::from_ref(object)).await?;
        self.format.infer_stats_and_ordering(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let store = state.runtime_env().object_store(conf.object_store_url.clone())?;
        let plan = self.format.create_physical_plan(state, conf).await?;
        let scan = plan.downcast_ref::<DataSourceExec>();
        let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        let config =
            config.ok_or_else(|| internal_datafusion_err!("a Parquet file is not scanned as one"))?;
        let source = config.file_source().downcast_ref::<ParquetSource>();
        let source = source.ok_or_else(|| internal_datafusion_err!("a Parquet file has another source"))?;
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let readers = CachedParquetFileReaderFactory::new(Arc::clone(&store), cache);
        let factory = Factory { readers, store, files: Arc::clone(&self.files) };
        let source = source.clone().with_parquet_file_reader_factory(Arc::new(factory));
        let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.format.file_source(table_schema)
    }
}

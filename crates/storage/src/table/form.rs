//! Stand-in until the glue of index kinds is there.
use std::cmp::Ordering;
use crate::index::{InsertError, OrderedIndex};
use crate::key::KeyShape;
use crate::pool::BlockPool;
pub enum Kind { Hash, Ordered }
pub struct Index(OrderedIndex);
impl Index {
    pub fn new(_: Kind, _unique: bool, _shape: KeyShape, pool: BlockPool) -> Self { Self(OrderedIndex::new(&pool)) }
    pub fn insert(&mut self, prefix: u128, tid: u64, tie: impl FnMut(u64) -> Ordering) -> Result<(), InsertError> { self.0.insert(prefix, tid, tie) }
    pub fn remove(&mut self, prefix: u128, tie: impl FnMut(u64) -> Ordering) -> Option<u64> { self.0.remove(prefix, tie) }
    pub fn find(&self, prefix: u128, tie: impl FnMut(u64) -> Ordering) -> Option<u64> { self.0.find(prefix, tie) }
    pub fn range(&self, low: u128, high: u128) -> impl DoubleEndedIterator<Item = (u128, u64)> + '_ { self.0.range(low, high) }
    pub fn for_each(&self, prefix: u128, mut each: impl FnMut(u64) -> bool) { for (_, tid) in self.0.range(prefix, prefix) { if !each(tid) { break; } } }
    pub fn prefetch(&self, prefix: u128) { self.0.prefetch(prefix) }
    pub fn kind_name(&self) -> &'static str { "b+tree" }
    pub fn memory_bytes(&self) -> usize { self.0.memory_bytes() }
}

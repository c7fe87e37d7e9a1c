//! tmp
#![allow(missing_docs)]
use crate::types::PageId; use std::collections::BTreeMap; use parking_lot::RwLock;
pub struct Index(RwLock<BTreeMap<Vec<u8>,PageId>>);
impl Index {
 pub fn new(p: PageId)->Self{ let mut m=BTreeMap::new(); m.insert(vec![],p); Index(RwLock::new(m)) }
 pub fn from_sorted(i: Vec<(Vec<u8>,PageId)>)->Self{ Index(RwLock::new(i.into_iter().collect())) }
 pub fn find(&self,k:&[u8])->PageId{ *self.0.read().range::<[u8],_>((std::ops::Bound::Unbounded,std::ops::Bound::Included(k))).next_back().unwrap().1 }
 pub fn find_before(&self,k:&[u8])->Option<(Vec<u8>,PageId)>{ self.0.read().range::<[u8],_>((std::ops::Bound::Unbounded,std::ops::Bound::Excluded(k))).next_back().map(|(k,p)|(k.clone(),*p)) }
 pub fn insert(&self,k:&[u8],p:PageId){ self.0.write().insert(k.to_vec(),p); }
 pub fn remove(&self,k:&[u8])->bool{ self.0.write().remove(k).is_some() }
 pub fn range(&self, f:&[u8], n:usize)->Vec<(Vec<u8>,PageId)>{ self.0.read().range(f.to_vec()..).take(n).map(|(k,p)|(k.clone(),*p)).collect() }
 pub fn for_each(&self, mut f: impl FnMut(&[u8],PageId)){ for (k,p) in self.range(b"",usize::MAX){ f(&k,p) } }
 pub fn len(&self)->usize{ self.0.read().len() }
 pub fn bytes(&self)->usize{ 0 }
}

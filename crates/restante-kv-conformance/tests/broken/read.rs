//! Faults of reads and scans.

use std::thread;
use std::time::Duration;

use restante_kv::{AtomicKv, Key, KeyRange, Model, Page, Snapshot, StoreError, Version};

use super::commit::later;
use super::{Broken, Fault};

const A_WHILE: Duration = Duration::from_micros(50);

/// A reader between its first poll and its end.
struct Reading<'a>(&'a Broken);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.state().readers -= 1;
    }
}

impl Broken {
    /// An older state that this read is answered from.
    fn older(&self) -> Option<Model> {
        match self.fault {
            Fault::OldReads => self.state().before.clone(),
            Fault::ReadsGoBackwards if self.call().is_multiple_of(3) => self.state().before.clone(),
            Fault::OthersUnseen => self.seen.lock().expect("nobody panics while holding this").clone(),
            _ => None,
        }
    }

    pub(super) async fn read(&self, mut keys: Vec<Key>) -> Result<Snapshot, StoreError> {
        keys.iter_mut().for_each(|key| *key = self.fault.key(key.clone()));
        match self.fault {
            Fault::AnswersSorted => keys.sort(),
            Fault::NoKeysRefused if keys.is_empty() => return Err(StoreError::InvalidRequest("no keys".to_owned())),
            Fault::ReadersHoldUpWriters => {
                self.state().readers += 1;
                let _reading = Reading(self);
                later().await;
                return self.shared.kv.get_many(keys).await;
            }
            Fault::Torn => {
                let mut snapshot = Snapshot { values: vec![], at: self.shared.kv.get_many(vec![]).await?.at };
                for key in keys {
                    snapshot.values.extend(self.shared.kv.get_many(vec![key]).await?.values);
                    thread::sleep(A_WHILE);
                }
                return Ok(snapshot);
            }
            _ => {}
        }
        let mut snapshot = self.shared.kv.get_many(keys.clone()).await?;
        if let Some(older) = self.older() {
            snapshot.values = keys.iter().map(|key| older.get(key).cloned()).collect();
        }
        for (key, record) in keys.iter().zip(&mut snapshot.values) {
            if let Some(record) = record {
                self.shown(key, record);
            }
        }
        if self.is(Fault::ClockMissing) {
            snapshot.at = None;
        }
        Ok(snapshot)
    }

    pub(super) async fn page(&self, mut range: KeyRange, mut limit: usize) -> Result<Page, StoreError> {
        let asked = range.clone();
        range.start = self.fault.key(range.start);
        let is_empty = range.end.as_ref().is_some_and(|end| *end <= range.start);
        let appended = |key: &Key| Key::from([key.as_bytes(), b"\0"].concat());
        match self.fault {
            Fault::LimitOf0 => limit = limit.max(1),
            Fault::OneRecordMore if limit > 0 => limit = limit.saturating_add(1),
            Fault::EndIncluded => range.end = range.end.as_ref().map(appended),
            Fault::StartLeftOut => range.start = appended(&range.start),
            Fault::EmptyRangeRefused if is_empty => return Err(StoreError::InvalidRequest("an empty range".to_owned())),
            Fault::PrefixOverflows if range.start.as_bytes().last() == Some(&0xFF) => range.end = Some(range.start.clone()),
            Fault::TornPages => return self.torn_page(range, limit).await,
            Fault::PagesByOffset => return self.page_by_offset(range, limit).await,
            Fault::CursorOfAHandle => {
                let owner = self.state().cursors.get(&range.start).map(|(handle, ..)| *handle);
                if owner.is_some_and(|owner| owner != self.handle) {
                    return Err(StoreError::InvalidRequest("an unknown cursor".to_owned()));
                }
            }
            Fault::BeginsAtRecordsOnly => {
                let is_record = self.shared.kv.model().get(&range.start).is_some();
                if !is_record && !range.start.as_bytes().ends_with(b"/") {
                    return Ok(Page { entries: vec![], next: None, ..self.shared.kv.scan(range, 1).await? });
                }
            }
            _ => {}
        }
        let mut page = self.shared.kv.scan(range.clone(), limit).await?;
        if let Some(older) = self.older() {
            page = Page { at: page.at, ..older.scan(&range, limit)? };
        }
        self.change_page(&asked, &mut page);
        if let Some(next) = &page.next {
            self.state().cursors.insert(next.clone(), (self.handle, range.start, 0));
        }
        Ok(page)
    }

    fn change_page(&self, asked: &KeyRange, page: &mut Page) {
        page.entries.iter_mut().for_each(|(key, record)| self.shown(key, record));
        match self.fault {
            Fault::SignedOrder => {
                let signed = |key: &Key| key.as_bytes().iter().map(|b| b.cast_signed()).collect::<Vec<_>>();
                page.entries.sort_by_key(|(key, _)| signed(key));
            }
            Fault::ScanShowsOtherVersions => {
                let other = |version: Version| Version::from_raw(version.to_raw() + 1);
                page.entries.iter_mut().for_each(|(_, record)| record.version = other(record.version));
            }
            Fault::PageIsTheEnd => page.next = None,
            Fault::LargePageIsTheEnd if page.entries.iter().map(|(_, r)| r.value.len()).sum::<usize>() > 100_000 => {
                page.entries.truncate(1);
                page.next = None;
            }
            Fault::SkipsAfterDeletedCursor => {
                let is_cursor = self.state().cursors.contains_key(&asked.start);
                if is_cursor && page.entries.first().is_some_and(|(key, _)| *key != asked.start) {
                    page.entries.remove(0);
                }
            }
            Fault::ClockMissing => page.at = None,
            _ => {}
        }
    }

    /// Record by record.
    async fn torn_page(&self, mut range: KeyRange, limit: usize) -> Result<Page, StoreError> {
        let mut page = self.shared.kv.scan(range.clone(), limit.min(1)).await?;
        while let Some(next) = page.next.take() {
            if page.entries.len() == limit {
                page.next = Some(next);
                break;
            }
            thread::sleep(A_WHILE);
            range.start = next;
            let more = self.shared.kv.scan(range.clone(), 1).await?;
            page.entries.extend(more.entries);
            page.next = more.next;
        }
        Ok(page)
    }

    /// Goes on after as many records as were read, whatever became of them.
    async fn page_by_offset(&self, range: KeyRange, limit: usize) -> Result<Page, StoreError> {
        let at = self.shared.kv.scan(range.clone(), limit).await?.at;
        let cursor = self.state().cursors.get(&range.start).cloned();
        let (start, offset) = cursor.map_or((range.start.clone(), 0), |(_, start, offset)| (start, offset));
        let all = self.all_of(&KeyRange { start: start.clone(), ..range });
        let entries: Vec<_> = all.iter().skip(offset).take(limit).cloned().collect();
        let seen = offset + entries.len();
        let next = all.get(seen).map(|(key, _)| key.clone());
        if let Some(next) = &next {
            self.state().cursors.insert(next.clone(), (self.handle, start, seen));
        }
        Ok(Page { entries, next, at })
    }
}

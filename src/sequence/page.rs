//! A sequence relation and its one page: open, check, lock, read, write, log.
//!
//! The guards here release what they hold when they are dropped, but not while a panic unwinds: PostgreSQL's
//! errors are panics until they reach the SQL function's edge, and the abort of the (sub)transaction releases
//! buffers, locks and relations itself.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::mem::{align_of, offset_of, size_of};
use std::thread::panicking;

use pgrx::pg_sys::{self, AclMode};

use super::advance::{Renewal, State, new_lease, within_lease, without_lease};
use super::compat::{
    FormData_pg_sequence, FormData_pg_sequence_data, GetRedoRecPtr, MarkBufferDirty, PageGetLSN,
    PageSetLSN, RelationIsPermanent, RelationNeedsWAL, SEQ_MAGIC, SEQRELID, UnlockReleaseBuffer,
    XLOG_SEQ_LOG, XLogRegisterData, lock_recent_buffer, xl_seq_rec,
};
use super::session::Caller;
use crate::constants::NODE_ID_BITS;
use crate::error::{Error, SequenceName};

/// Rights that allow `nextval`.
pub const USAGE_OR_UPDATE: AclMode = (pg_sys::ACL_USAGE | pg_sys::ACL_UPDATE) as AclMode;
/// Rights that allow `currval`.
pub const SELECT_OR_USAGE: AclMode = (pg_sys::ACL_SELECT | pg_sys::ACL_USAGE) as AclMode;

/// What is known of a sequence: true for as long as no invalidation of it arrives, which its lock keeps from happening.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Default))]
pub struct Properties {
    /// INCREMENT, not yet checked.
    pub increment: i64,
    /// MAXVALUE.
    pub max_value: i64,
    /// CACHE, 1 or more.
    pub cache: i64,
    file: xl_seq_rec,
    logging: Logging,
}

/// When changes of a sequence are logged. As wide as its neighbours, so that they are copied together in whole words:
/// a byte at the end of [`Properties`] cost a call a tenth of its time.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Default))]
#[repr(u32)]
enum Logging {
    #[cfg_attr(test, default)]
    Now,
    /// From the transaction's end on: with `wal_level = minimal` the file is new in it. Its commit is an invalidation.
    Later,
    Never,
}

impl Properties {
    /// A mark of the sequence's file, as wide as a node number: a copy of the sequence in another file or another
    /// database has another one, but for a chance of 1 in 1024.
    fn file_mark(&self) -> i64 {
        // Multiplied by 2^32 divided by the golden ratio, and the upper bits taken: OIDs start at multiples of 8192
        // after each crash, so their lower bits repeat.
        let (database, file) = self.file.database_and_file();
        let mixed = database.wrapping_add(file).wrapping_mul(0x9E37_79B9);
        i64::from(mixed >> (u32::BITS - NODE_ID_BITS))
    }
}

/// A sequence that is locked to the end of the transaction, and open.
pub struct Sequence {
    relation: pg_sys::Relation,
}

impl Sequence {
    /// Locks the sequence to the end of the top transaction, and opens it.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSequence`], [`Error::NotASequence`].
    pub fn open(oid: pg_sys::Oid) -> Result<Self, Error> {
        lock_for_transaction(oid);
        // SAFETY: any OID may be given; the lock is held, so none is asked for.
        let relation = unsafe { pg_sys::try_relation_open(oid, pg_sys::NoLock.cast_signed()) };
        if relation.is_null() {
            return Err(Error::NoSuchSequence(oid.to_u32()));
        }
        let sequence = Self { relation };
        if sequence.form().relkind.cast_unsigned() == pg_sys::RELKIND_SEQUENCE {
            Ok(sequence)
        } else {
            Err(Error::NotASequence(sequence.relation_name()))
        }
    }

    /// Checks that the role has at least one of the rights.
    ///
    /// # Errors
    ///
    /// [`Error::PermissionDenied`].
    pub fn check_rights(&self, role: pg_sys::Oid, rights: AclMode) -> Result<(), Error> {
        // SAFETY: any OIDs may be given.
        let answer = unsafe { pg_sys::pg_class_aclcheck(self.oid(), role, rights) };
        if answer == pg_sys::AclResult::ACLCHECK_OK {
            Ok(())
        } else {
            Err(Error::PermissionDenied(self.relation_name()))
        }
    }

    /// Checks that the caller may write: its transaction is not read-only, as all are on a standby, and not in parallel
    /// mode. A temporary sequence may be written to in a read-only transaction.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`], [`Error::Parallel`].
    pub fn check_writable(&self, caller: &Caller) -> Result<(), Error> {
        if caller.read_only && !self.relation().rd_islocaltemp {
            Err(Error::ReadOnly)
        } else if caller.parallel {
            Err(Error::Parallel)
        } else {
            Ok(())
        }
    }

    /// Reads the sequence's catalog rows.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSequence`].
    pub fn properties(&self) -> Result<Properties, Error> {
        // SAFETY: the cache's key is one OID.
        let tuple = unsafe { pg_sys::SearchSysCache1(SEQRELID, self.oid().into()) };
        if tuple.is_null() {
            return Err(Error::NoSuchSequence(self.oid().to_u32()));
        }
        // SAFETY: a row of pg_sequence begins with this struct; the tuple is pinned until it is released below.
        let form: *const FormData_pg_sequence = unsafe { pg_sys::heap_tuple_get_struct(tuple) };
        // SAFETY: as above.
        let form = unsafe { &*form };
        let properties = Properties {
            increment: form.seqincrement,
            max_value: form.seqmax,
            cache: form.seqcache,
            file: self.relation().into(),
            logging: self.logging(),
        };
        // SAFETY: pinned by SearchSysCache1 above; `form` is not used any more.
        unsafe { pg_sys::ReleaseSysCache(tuple) };
        Ok(properties)
    }

    /// Pins the sequence's page and locks it exclusively.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedSequence`].
    pub fn lock_page(&self, properties: Properties) -> Result<LockedPage, Error> {
        // SAFETY: the relation is open; a sequence has a block 0.
        let buffer = unsafe { pg_sys::ReadBuffer(self.relation, 0) };
        // SAFETY: pinned by ReadBuffer.
        unsafe { pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE.cast_signed()) };
        let page = LockedPage { page: Page { properties, buffer } };
        if page.has_sequence_tuple() {
            Ok(page)
        } else {
            Err(Error::DamagedSequence(self.relation_name()))
        }
    }

    /// The sequence's names, for messages.
    pub fn name(&self) -> SequenceName {
        let relname = self.form().relname.data.as_ptr();
        // SAFETY: any OID may be given; the result is a palloc'd string or null, and quoting takes both.
        let namespace = unsafe { pg_sys::get_namespace_name(self.form().relnamespace) };
        // SAFETY: relname ends in NUL.
        let quoted = unsafe { pg_sys::quote_qualified_identifier(namespace, relname) };
        // SAFETY: a palloc'd string that ends in NUL.
        let quoted = unsafe { CStr::from_ptr(quoted) };
        SequenceName { name: self.relation_name(), quoted: quoted.to_string_lossy().into_owned() }
    }

    fn logging(&self) -> Logging {
        // SAFETY: the relation is open.
        let needs_wal = unsafe { RelationNeedsWAL(self.relation()) };
        // SAFETY: as above.
        let permanent = unsafe { RelationIsPermanent(self.relation()) };
        match (needs_wal, permanent) {
            (true, _) => Logging::Now,
            (false, true) => Logging::Later,
            (false, false) => Logging::Never,
        }
    }

    fn relation_name(&self) -> String {
        let relname = self.form().relname.data.as_ptr();
        // SAFETY: a name column ends in NUL.
        unsafe { CStr::from_ptr(relname) }.to_string_lossy().into_owned()
    }

    fn oid(&self) -> pg_sys::Oid {
        self.relation().rd_id
    }

    fn form(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: set in every open relation.
        unsafe { &*self.relation().rd_rel }
    }

    fn relation(&self) -> &pg_sys::RelationData {
        // SAFETY: `open` established that it is not null, and it is open until `self` is dropped.
        unsafe { &*self.relation }
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        if !panicking() {
            // SAFETY: opened by `open`. The lock stays until the transaction ends.
            unsafe { pg_sys::relation_close(self.relation, pg_sys::NoLock.cast_signed()) };
        }
    }
}

/// Takes the lock that `nextval` takes. It belongs to the top transaction, so that a rollback to a savepoint does not
/// release what this backend remembers to hold.
pub fn lock_for_transaction(oid: pg_sys::Oid) {
    // SAFETY: a variable of the backend's only thread.
    let current = unsafe { pg_sys::CurrentResourceOwner };
    // SAFETY: as above.
    let top = unsafe { pg_sys::TopTransactionResourceOwner };
    // SAFETY: as above. Should the lock raise an error, the transaction's abort sets the owner itself.
    unsafe { pg_sys::CurrentResourceOwner = top };
    // SAFETY: any OID may be given.
    unsafe { pg_sys::LockRelationOid(oid, pg_sys::RowExclusiveLock.cast_signed()) };
    // SAFETY: a variable of the backend's only thread.
    unsafe { pg_sys::CurrentResourceOwner = current };
}

/// A sequence's page: where it was when it was locked last, and what is known of the sequence.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Default))]
pub struct Page {
    /// What is known of the sequence.
    pub properties: Properties,
    buffer: pg_sys::Buffer,
}

impl Page {
    /// Locks the page again, without a look at the catalogs, if it is where it was. What is known of the sequence must
    /// still be true.
    pub fn lock(self) -> Option<LockedPage> {
        // A temporary sequence's buffer: PostgreSQL 14.0 to 14.4 would look for it among the shared ones.
        if self.buffer < 0 {
            return None;
        }
        // SAFETY: `Sequence::lock_page` had the page in this buffer, and the caller vouches for the relation's lock.
        let locked = unsafe { lock_recent_buffer(self.properties.file, self.buffer) };
        locked.then(|| LockedPage { page: self })
    }
}

/// The sequence's page, pinned and locked exclusively.
pub struct LockedPage {
    page: Page,
}

impl LockedPage {
    /// What it takes to lock the page again.
    pub fn page(&self) -> Page {
        self.page
    }

    /// The stored state.
    pub fn state(&self) -> State {
        // SAFETY: `has_sequence_tuple` established the layout, and the page is locked.
        let data = unsafe { &*self.data() };
        State { last_value: data.last_value, log_cnt: data.log_cnt, is_called: data.is_called }
    }

    /// Makes `id` the last value, and logs a new lease if the last one does not cover it.
    pub fn store(&mut self, id: i64) {
        // Dirty before the checkpoint's start is looked at: a checkpoint that starts after that look then writes
        // this page, and one that started before it is seen.
        // SAFETY: pinned and locked exclusively.
        unsafe { MarkBufferDirty(self.page.buffer) };

        let Properties { increment, max_value, logging, .. } = self.page.properties;
        let file = self.page.properties.file_mark();
        let new_lease = || new_lease(id, increment, max_value, file);
        match logging {
            // Nothing is leased to it by the time that it is logged from.
            Logging::Later => self.set_state(without_lease(id)),
            Logging::Never => self.set_state(new_lease().stored),
            Logging::Now => match within_lease(self.state(), id, increment, file) {
                Some(stored) if self.is_logged_since_checkpoint() => self.set_state(stored),
                _ => self.log(new_lease()),
            },
        }
    }

    /// Where the WAL ends that covers the stored state, if it is logged at all.
    pub fn covering_wal(&self) -> Option<Wal> {
        (self.page.properties.logging == Logging::Now).then(|| Wal(PageGetLSN(self.header())))
    }

    /// Replay starts at the last checkpoint: what has not been logged since would be forgotten by it.
    fn is_logged_since_checkpoint(&self) -> bool {
        PageGetLSN(self.header()) > GetRedoRecPtr()
    }

    /// The critical section: an error inside is a PANIC, and the server recovers from WAL.
    ///
    /// A function and not a guard: a panic that unwinds out of it must leave the section's count raised.
    fn log(&mut self, Renewal { stored, logged }: Renewal) {
        // So that the commit waits for this record's flush. It may fail, hence before the critical section.
        // SAFETY: a transaction is in progress, not a parallel one, and only a temporary sequence, which is not logged,
        // is written to in a read-only one: `check_writable`.
        unsafe { pg_sys::GetTopTransactionId() };
        // SAFETY: a counter of the backend's only thread.
        unsafe { pg_sys::CritSectionCount += 1 };
        // The record takes the tuple from the page. Nobody sees this state there: the page is locked.
        self.set_state(logged);
        let lsn = self.insert_wal();
        // SAFETY: a buffer's page begins with this header, and it is locked.
        PageSetLSN(unsafe { &mut *self.header_ptr() }, lsn);
        self.set_state(stored);
        // SAFETY: as above.
        unsafe { pg_sys::CritSectionCount -= 1 };
    }

    fn insert_wal(&self) -> pg_sys::XLogRecPtr {
        let head = &raw const self.page.properties.file;
        let (tuple, tuple_len) = self.tuple();
        // SAFETY: no other record is under construction.
        unsafe { pg_sys::XLogBeginInsert() };
        // SAFETY: pinned and locked by `lock_page`, marked dirty by `store`; replay makes the whole page anew.
        unsafe { pg_sys::XLogRegisterBuffer(0, self.page.buffer, WILL_INIT) };
        // SAFETY: `head` outlives the insertion, in `self`.
        unsafe { XLogRegisterData(head, HEAD_LEN) };
        // SAFETY: the tuple is on the pinned page.
        unsafe { XLogRegisterData(tuple, tuple_len) };
        // SAFETY: the record is complete, in the form that the sequence resource manager replays.
        unsafe { pg_sys::XLogInsert(SEQUENCE_RMGR, XLOG_SEQ_LOG) }
    }

    fn set_state(&mut self, state: State) {
        // SAFETY: `has_sequence_tuple` established the layout, and the page is locked exclusively.
        let data = unsafe { &mut *self.data() };
        data.last_value = state.last_value;
        data.log_cnt = state.log_cnt;
        data.is_called = state.is_called;
    }

    /// Whether the page is what PostgreSQL makes of a sequence's, and makes of it again whenever it writes to it: its magic
    /// number, and at item 1 a tuple with room for three columns.
    fn has_sequence_tuple(&self) -> bool {
        let special = usize::from(self.header().pd_special);
        if special + size_of::<u32>() > pg_sys::BLCKSZ as usize {
            return false;
        }
        // SAFETY: `special` is inside the page.
        let magic: *const u32 = unsafe { self.header_ptr().byte_add(special) }.cast();
        // SAFETY: inside the page; PostgreSQL aligns the special space, but a damaged page may not.
        let magic = unsafe { magic.read_unaligned() };
        magic == SEQ_MAGIC && self.has_room_for_columns()
    }

    fn has_room_for_columns(&self) -> bool {
        let (tuple, tuple_len) = self.tuple();
        let offset = tuple.addr() - self.header_ptr().addr();
        let end = offset + tuple_len as usize;
        if !tuple.is_aligned() || end > pg_sys::BLCKSZ as usize || tuple_len < TUPLE_HEADER_LEN {
            return false;
        }
        // SAFETY: the tuple's header is inside the page, by the check above.
        let header_len = usize::from(unsafe { (*tuple).t_hoff });
        let columns = offset + header_len;
        columns.is_multiple_of(align_of::<FormData_pg_sequence_data>())
            && columns + offset_of!(FormData_pg_sequence_data, is_called) < end
    }

    /// The sequence's three columns.
    fn data(&self) -> *mut FormData_pg_sequence_data {
        let (tuple, _) = self.tuple();
        // SAFETY: `has_sequence_tuple` established that the tuple is a sequence's.
        let header_len = usize::from(unsafe { (*tuple).t_hoff });
        // SAFETY: the columns follow the tuple's header.
        unsafe { tuple.byte_add(header_len) }.cast()
    }

    /// The page's one tuple, and its length.
    fn tuple(&self) -> (pg_sys::HeapTupleHeader, u32) {
        // SAFETY: the array of items follows the page's header, and a sequence's page has one.
        let items = unsafe { (*self.header_ptr()).pd_linp.as_ptr() };
        // SAFETY: as above.
        let item = unsafe { &*items };
        // Of a damaged page it may lie outside.
        let tuple = self.header_ptr().wrapping_byte_add(item.lp_off() as usize);
        (tuple.cast(), item.lp_len())
    }

    fn header(&self) -> &pg_sys::PageHeaderData {
        // SAFETY: a buffer's page begins with this header; pinned and locked by `lock_page`.
        unsafe { &*self.header_ptr() }
    }

    fn header_ptr(&self) -> *mut pg_sys::PageHeaderData {
        // SAFETY: pinned by `lock_page`.
        unsafe { pg_sys::BufferGetPage(self.page.buffer) }.cast()
    }
}

impl Drop for LockedPage {
    fn drop(&mut self) {
        if !panicking() {
            // SAFETY: pinned and locked, in this call and so under this resource owner.
            unsafe { UnlockReleaseBuffer(self.page.buffer) };
        }
    }
}

/// A place in the WAL.
#[derive(Clone, Copy)]
pub struct Wal(pg_sys::XLogRecPtr);

impl Wal {
    /// Waits until the WAL is on disk as far as here.
    pub fn flush(self) {
        // SAFETY: the place was read from a page, so the WAL has been inserted at least so far.
        unsafe { pg_sys::XLogFlush(self.0) };
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a constant of 12")]
const HEAD_LEN: u32 = size_of::<xl_seq_rec>() as u32;
#[expect(clippy::cast_possible_truncation, reason = "a constant of 23 or 24")]
const TUPLE_HEADER_LEN: u32 = size_of::<pg_sys::HeapTupleHeaderData>() as u32;
#[expect(clippy::cast_possible_truncation, reason = "a constant of 6")]
const WILL_INIT: u8 = pg_sys::REGBUF_WILL_INIT as u8;
#[expect(clippy::cast_possible_truncation, reason = "a constant of 15")]
const SEQUENCE_RMGR: u8 = pg_sys::RmgrIds::RM_SEQ_ID as u8;

//! What pgrx does not bind of PostgreSQL's C: structs, macros, and the differences between majors 14 to 18; and the
//! safe form of what is safe but for being C.
//!
//! Names are PostgreSQL's own.

#![allow(unsafe_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]

use std::ffi::CStr;
use std::hint::spin_loop;
use std::mem::size_of;

use pgrx::pg_sys;

/// `catalog/pg_sequence.h`
#[repr(C)]
pub struct FormData_pg_sequence {
    pub seqrelid: pg_sys::Oid,
    pub seqtypid: pg_sys::Oid,
    pub seqstart: i64,
    pub seqincrement: i64,
    pub seqmax: i64,
    pub seqmin: i64,
    pub seqcache: i64,
    pub seqcycle: bool,
}
const _: () = assert!(size_of::<FormData_pg_sequence>() == 56);

/// `commands/sequence.h`: the one tuple of a sequence relation.
#[repr(C)]
pub struct FormData_pg_sequence_data {
    pub last_value: i64,
    pub log_cnt: i64,
    pub is_called: bool,
}
const _: () = assert!(size_of::<FormData_pg_sequence_data>() == 24);

/// `c.h`
const InvalidSubTransactionId: pg_sys::SubTransactionId = 0;

/// `commands/sequence.c`: what the page's special space holds.
pub const SEQ_MAGIC: u32 = 0x1717;

/// `commands/sequence.h`: the only kind of WAL record of `RM_SEQ_ID`.
pub const XLOG_SEQ_LOG: u8 = 0x00;

/// `commands/sequence.h`: the WAL record's head, which the tuple follows: where the relation's file is.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Default))]
#[repr(C)]
pub struct xl_seq_rec {
    #[cfg(any(feature = "pg14", feature = "pg15"))]
    pub node: pg_sys::RelFileNode,
    #[cfg(not(any(feature = "pg14", feature = "pg15")))]
    pub locator: pg_sys::RelFileLocator,
}
const _: () = assert!(size_of::<xl_seq_rec>() == 12);

impl From<&pg_sys::RelationData> for xl_seq_rec {
    fn from(relation: &pg_sys::RelationData) -> Self {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        return Self { node: relation.rd_node };
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        return Self { locator: relation.rd_locator };
    }
}

impl xl_seq_rec {
    /// The numbers of the relation's database and file.
    pub fn database_and_file(&self) -> (u32, u32) {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        return (self.node.dbNode.to_u32(), self.node.relNode.to_u32());
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        return (self.locator.dbOid.to_u32(), self.locator.relNumber.to_u32());
    }
}

/// `utils/rel.h`
///
/// # Safety
///
/// `relation.rd_rel` must point to the relation's catalog row, as it does while the relation is open.
pub unsafe fn RelationIsPermanent(relation: &pg_sys::RelationData) -> bool {
    // SAFETY: the caller holds the relation open.
    let form = unsafe { &*relation.rd_rel };
    form.relpersistence.cast_unsigned() == pg_sys::RELPERSISTENCE_PERMANENT
}

/// `utils/rel.h`: whether changes of the relation must be logged now. With `wal_level = minimal` they are not
/// while its file is new in this transaction.
///
/// # Safety
///
/// As [`RelationIsPermanent`].
pub unsafe fn RelationNeedsWAL(relation: &pg_sys::RelationData) -> bool {
    #[cfg(any(feature = "pg14", feature = "pg15"))]
    let new_file = relation.rd_firstRelfilenodeSubid;
    #[cfg(not(any(feature = "pg14", feature = "pg15")))]
    let new_file = relation.rd_firstRelfilelocatorSubid;
    // SAFETY: a plain setting of the server, read by the backend's only thread.
    let wal_level = unsafe { pg_sys::wal_level };
    let logged_always = wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA.cast_signed();
    // SAFETY: the caller holds the relation open.
    let permanent = unsafe { RelationIsPermanent(relation) };
    permanent
        && (logged_always
            || (relation.rd_createSubid == InvalidSubTransactionId
                && new_file == InvalidSubTransactionId))
}

/// `storage/bufpage.h`
pub fn PageGetLSN(page: &pg_sys::PageHeaderData) -> pg_sys::XLogRecPtr {
    (u64::from(page.pd_lsn.xlogid) << 32) | u64::from(page.pd_lsn.xrecoff)
}

/// `storage/bufpage.h`
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the LSN")]
pub fn PageSetLSN(page: &mut pg_sys::PageHeaderData, lsn: pg_sys::XLogRecPtr) {
    page.pd_lsn.xlogid = (lsn >> 32) as u32;
    page.pd_lsn.xrecoff = lsn as u32;
}

/// `access/xloginsert.h`
///
/// # Safety
///
/// `data` must stay valid until the record is inserted.
pub unsafe fn XLogRegisterData<T>(data: *const T, len: u32) {
    #[cfg(feature = "pg18")]
    let data = data.cast();
    #[cfg(not(feature = "pg18"))]
    let data = data.cast_mut().cast();
    #[cfg(any(feature = "pg14", feature = "pg15"))]
    let len = len.cast_signed();
    // SAFETY: the caller's.
    unsafe { pg_sys::XLogRegisterData(data, len) }
}

/// `storage/proc.h`: the top transaction's number in this backend.
pub fn MyProc_lxid() -> pg_sys::LocalTransactionId {
    // SAFETY: set when the backend starts, before any SQL runs, and never changed.
    let process = unsafe { pg_sys::MyProc };
    // SAFETY: as above; only this backend writes its lxid.
    let process = unsafe { &*process };
    #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
    return process.lxid;
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
    return process.vxid.lxid;
}

// pgrx guards each call of a PostgreSQL function, so that an error becomes a panic; that costs more than some of these
// do themselves. They raise no error, but for those that `lock_recent_buffer` guards together.
unsafe extern "C-unwind" {
    /// `miscadmin.h`: the current role, which SECURITY DEFINER and SET ROLE change.
    pub safe fn GetUserId() -> pg_sys::Oid;

    /// `access/xact.h`
    pub safe fn IsInParallelMode() -> bool;

    /// `utils/timestamp.h`: the clock, in microseconds since 2000-01-01.
    pub safe fn GetCurrentTimestamp() -> pg_sys::TimestampTz;

    /// `access/xlog.h`: where a recovery would start.
    pub safe fn GetRedoRecPtr() -> pg_sys::XLogRecPtr;

    /// `storage/bufmgr.h`
    ///
    /// # Safety
    ///
    /// The buffer must be pinned and locked exclusively.
    pub fn MarkBufferDirty(buffer: pg_sys::Buffer);

    /// `storage/bufmgr.h`
    ///
    /// # Safety
    ///
    /// The buffer must be locked, and pinned under the current resource owner.
    pub fn UnlockReleaseBuffer(buffer: pg_sys::Buffer);

    fn ReadRecentBuffer(
        #[cfg(any(feature = "pg14", feature = "pg15"))] file: pg_sys::RelFileNode,
        #[cfg(not(any(feature = "pg14", feature = "pg15")))] file: pg_sys::RelFileLocator,
        fork: pg_sys::ForkNumber::Type,
        block: pg_sys::BlockNumber,
        recent_buffer: pg_sys::Buffer,
    ) -> bool;

    fn ConditionalLockBuffer(buffer: pg_sys::Buffer) -> bool;

    fn LockBuffer(buffer: pg_sys::Buffer, mode: i32);
}

/// How often a lock is tried for, and how long the pause between is, in the processor's hints: some microseconds in
/// all. Held for less than one as a rule, it is not worth going to sleep for, which costs both sides several. A try takes
/// the cache line from the lock's holder, hence the pause.
const LOCK_TRIES: u32 = 10;
const PAUSE_HINTS: u32 = 40;

/// Pins a buffer and locks it exclusively, if it still holds block 0 of the file.
///
/// # Safety
///
/// The buffer must have held that block in this backend before, and the lock on the file's relation still be held.
pub unsafe fn lock_recent_buffer(file: xl_seq_rec, buffer: pg_sys::Buffer) -> bool {
    #[cfg(any(feature = "pg14", feature = "pg15"))]
    let file = file.node;
    #[cfg(not(any(feature = "pg14", feature = "pg15")))]
    let file = file.locator;
    let pin_and_lock = || {
        // SAFETY: the caller's.
        let pinned = unsafe { ReadRecentBuffer(file, pg_sys::ForkNumber::MAIN_FORKNUM, 0, buffer) };
        if !pinned {
            return false;
        }
        for _ in 0..LOCK_TRIES {
            // SAFETY: pinned just now.
            if unsafe { ConditionalLockBuffer(buffer) } {
                return true;
            }
            for _ in 0..PAUSE_HINTS {
                spin_loop();
            }
        }
        // SAFETY: pinned just now.
        unsafe { LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE.cast_signed()) };
        true
    };
    // SAFETY: nothing inside panics, raises an error of Rust's, or needs Drop.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(pin_and_lock) }
}

/// `access/xact.h`
pub fn XactReadOnly() -> bool {
    // SAFETY: a variable of the backend's only thread.
    unsafe { pg_sys::XactReadOnly }
}

/// `utils/wait_event.h`: shows the backend as waiting for an extension.
pub fn pgstat_report_wait_start() {
    set_wait_event(pg_sys::PG_WAIT_EXTENSION);
}

/// `utils/wait_event.h`: shows the backend as at work.
pub fn pgstat_report_wait_end() {
    set_wait_event(0);
}

fn set_wait_event(wait_event_info: u32) {
    // SAFETY: a variable of the backend's only thread, which always points somewhere.
    let shown = unsafe { pg_sys::my_wait_event_info };
    // SAFETY: as above; others read the four bytes at any time.
    unsafe { shown.write_volatile(wait_event_info) };
}

/// `utils/syscache.h`: sequences' parameters. They change with the relation, by ALTER SEQUENCE.
pub const SEQRELID: i32 = pg_sys::SysCacheIdentifier::SEQRELID.cast_signed();
/// `utils/syscache.h`: roles.
pub const AUTHOID: i32 = pg_sys::SysCacheIdentifier::AUTHOID.cast_signed();
/// `utils/syscache.h`: databases, whose owners are members of `pg_database_owner`.
pub const DATABASEOID: i32 = pg_sys::SysCacheIdentifier::DATABASEOID.cast_signed();
/// `utils/syscache.h`: memberships, by role and member.
pub const AUTHMEMROLEMEM: i32 = pg_sys::SysCacheIdentifier::AUTHMEMROLEMEM.cast_signed();

/// `utils/inval.h`: what is called when a relation changes, with its OID or none for all. It must not raise.
pub fn CacheRegisterRelcacheCallback(callback: extern "C-unwind" fn(pg_sys::Datum, pg_sys::Oid)) {
    // SAFETY: the function stays where it is: a library is never unloaded.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(callback), pg_sys::Datum::null()) };
}

/// `utils/inval.h`: what is called when a row behind a system cache changes. It must not raise.
pub fn CacheRegisterSyscacheCallback(
    cache: i32,
    callback: extern "C-unwind" fn(pg_sys::Datum, i32, u32),
) {
    // SAFETY: the function stays where it is: a library is never unloaded.
    unsafe { pg_sys::CacheRegisterSyscacheCallback(cache, Some(callback), pg_sys::Datum::null()) };
}

/// `utils/guc.h`: refuses other settings of this prefix; before PostgreSQL 15 it only warns of them.
pub fn MarkGUCPrefixReserved(prefix: &CStr) {
    #[cfg(feature = "pg14")]
    // SAFETY: PostgreSQL only reads the string, which ends in NUL.
    unsafe {
        pg_sys::EmitWarningsOnPlaceholders(prefix.as_ptr())
    };
    #[cfg(not(feature = "pg14"))]
    // SAFETY: PostgreSQL copies the string, which ends in NUL.
    unsafe {
        pg_sys::MarkGUCPrefixReserved(prefix.as_ptr())
    };
}

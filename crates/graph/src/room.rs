//! Room in memory for what a file announces or unpacks to: where there is none, that is an error in words and not the
//! end of the process. A small compressed file may hold thousands of times its size.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Problem;
use crate::free::{free_memory, own_memory};

/// Bytes that must be free beside a list at least this large: the buffers that unpack it are taken without asking, and
/// must not end the process. Above the 32 MiB up to which the allocator learns from what is freed, so that asking
/// leaves no trace.
const BESIDE: usize = 40 << 20;

/// How many bytes are given before the system is asked again what is free.
const STEP: u64 = 16 << 20;
/// Bytes that were given in all, and those of them at which the system was asked last.
static GIVEN: AtomicU64 = AtomicU64::new(0);
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Whether memory for this many bytes is free, before they are taken. What was given before may not be in use yet: of
/// that this share is expected to come.
pub fn expect_free(bytes: u64, share: f64) -> Result<(), Problem> {
    let given = GIVEN.fetch_add(bytes, Relaxed).saturating_add(bytes);
    if given - ASKED.load(Relaxed).min(given) < STEP {
        return Ok(());
    }
    let Some(free) = free_memory() else { return Ok(()) };
    let before = own_memory().unwrap_or(0).min(given - bytes) as f64 * share;
    let enough = (bytes as f64) + (BESIDE as f64) + before <= free as f64;
    if enough {
        ASKED.store(given, Relaxed);
        return Ok(());
    }
    GIVEN.fetch_sub(bytes, Relaxed);
    let free = free >> 20;
    Err(Problem::TooLarge(format!(
        "read or unpacked it does not fit into memory, of which {free} MiB are free"
    )))
}

/// An empty list with room for this many values.
pub fn with_room<T>(count: usize) -> Result<Vec<T>, Problem> {
    let mut values = Vec::new();
    expect_free((count as u64).saturating_mul(size_of::<T>() as u64), 0.0)?;
    values.try_reserve_exact(count).map_err(|_| none_for::<T>(count))?;
    beside(&values)?;
    Ok(values)
}

/// Whether there is still room beside a large list.
fn beside<T>(values: &Vec<T>) -> Result<(), Problem> {
    if values.capacity().saturating_mul(size_of::<T>()) < BESIDE {
        return Ok(());
    }
    let mut tried = Vec::<u8>::new();
    let free = tried.try_reserve_exact(BESIDE);
    // An allocation that nobody looks at may be left out, with its failure.
    std::hint::black_box(tried);
    free.map_err(|_| none_for::<T>(values.capacity()))
}

/// A list of this many equal values.
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>, Problem> {
    let mut values = with_room(count)?;
    values.resize(count, value);
    Ok(values)
}

/// A copy of a list.
pub fn copy<T: Copy>(from: &[T]) -> Result<Vec<T>, Problem> {
    let mut values = with_room(from.len())?;
    values.extend_from_slice(from);
    Ok(values)
}

/// Adds a value to a list.
#[inline]
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<(), Problem> {
    if values.len() == values.capacity() {
        grow(values, 1)?;
    }
    values.push(value);
    Ok(())
}

/// Adds values to a list.
pub fn extend<T>(values: &mut Vec<T>, more: impl ExactSizeIterator<Item = T>) -> Result<(), Problem> {
    if values.capacity() - values.len() < more.len() {
        grow(values, more.len())?;
    }
    values.extend(more);
    Ok(())
}

/// Makes room for more values in a list that grows.
#[cold]
pub fn grow<T>(values: &mut Vec<T>, more: usize) -> Result<(), Problem> {
    let wanted = values.len().saturating_add(more);
    // Doubling is quickest; where that does not fit, a quarter more may. All other lists may be about to do the same.
    let mut refusal = None;
    for part in [1, 4] {
        let more = more.max(values.len() / part);
        let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
        refusal = expect_free(bytes, 1.0 / part as f64).err();
        if refusal.is_none() && values.try_reserve_exact(more).is_ok() {
            return beside(values);
        }
    }
    Err(refusal.unwrap_or_else(|| none_for::<T>(wanted)))
}

fn none_for<T>(count: usize) -> Problem {
    let megabytes = count.saturating_mul(size_of::<T>()) >> 20;
    Problem::TooLarge(format!(
        "read or unpacked it does not fit into memory (there is no room for {megabytes} MiB or more at one place)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_can_hold_is_an_error() {
        let most = usize::MAX / 16;
        assert!(with_room::<u64>(most).unwrap_err().to_string().contains("does not fit into memory"));
        assert!(filled(0u8, usize::MAX - 1).is_err());
        let mut values = vec![1u32];
        assert!(grow(&mut values, usize::MAX / 2).is_err());
        push(&mut values, 2).unwrap();
        extend(&mut values, [3, 4].into_iter()).unwrap();
        assert_eq!((values, copy(&[1, 2]).unwrap()), (vec![1, 2, 3, 4], vec![1, 2]));
    }
}

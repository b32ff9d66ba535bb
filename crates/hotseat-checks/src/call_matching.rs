//! Assigns expected calls to actual ones in any order. Equal calls form a group, so many equal calls cost as much as one.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Maximum number of comparisons and of steps of the search.
const MAX_STEPS: usize = 10_000_000;

/// The calls differ in too many ways to be assigned.
#[derive(Debug, PartialEq)]
pub(super) struct TooManyDifferentCalls;

/// Equal calls, as indices in their list.
type CallGroup = Vec<usize>;

/// Groups calls by what decides which others they match. Returns the groups and their keys in the order of their first calls.
pub(super) fn group_calls<K: Hash + Eq + Clone>(keys: impl Iterator<Item = K>) -> (Vec<K>, Vec<CallGroup>) {
    let (mut found, mut groups): (Vec<K>, Vec<CallGroup>) = Default::default();
    let mut places: HashMap<K, usize> = HashMap::new();
    for (index, key) in keys.enumerate() {
        match places.get(&key) {
            Some(place) => groups[*place].push(index),
            None => {
                places.insert(key.clone(), groups.len());
                found.push(key);
                groups.push(vec![index]);
            }
        }
    }
    (found, groups)
}

/// Assigns groups of expected calls to as many calls of groups of actual ones as possible (bipartite matching). One call may
/// match several expected calls, so earlier assignments are changed if that makes room.
pub(super) struct GroupMatching {
    wanted: Vec<CallGroup>,
    made: Vec<CallGroup>,
    /// For each group of expected calls, the groups of actual ones that they match.
    partners: Vec<Vec<usize>>,
    /// For each group of expected calls, the number of its partners before the first one with free calls.
    full_partners: Vec<usize>,
    /// For each group of actual calls, the number of those that each group of expected ones takes.
    taken: Vec<BTreeMap<usize, usize>>,
    /// For each group of actual calls, the number of those that are free.
    free: Vec<usize>,
    /// True for groups of actual calls that a search has reached.
    is_reached: Vec<bool>,
    /// True for groups of expected calls for which a search seeks calls.
    is_seeking: Vec<bool>,
    steps: usize,
}

/// A group of expected calls that could take other calls.
#[derive(Clone, Copy)]
struct GroupSeeker {
    group: usize,
    /// The group of its present calls, and the index of the seeker that would take those.
    gives: Option<(usize, usize)>,
}

impl GroupMatching {
    /// Prepares the assignment. `candidates` returns the groups of actual calls that a group of expected ones may match, and `fits`
    /// decides for one call of each group.
    pub(super) fn new<'a>(
        wanted: Vec<CallGroup>,
        made: Vec<CallGroup>,
        candidates: impl Fn(usize) -> &'a [usize],
        fits: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, TooManyDifferentCalls> {
        let mut steps = 0;
        let mut partners = Vec::with_capacity(wanted.len());
        for (group, calls) in wanted.iter().enumerate() {
            let mut matching = Vec::new();
            for &candidate in candidates(group) {
                steps += 1;
                if steps > MAX_STEPS {
                    return Err(TooManyDifferentCalls);
                }
                matching.extend(fits(calls[0], made[candidate][0]).then_some(candidate));
            }
            partners.push(matching);
        }
        let free: Vec<usize> = made.iter().map(Vec::len).collect();
        let (taken, is_reached) = (vec![BTreeMap::new(); made.len()], vec![false; made.len()]);
        let (full_partners, is_seeking) = (vec![0; wanted.len()], vec![false; wanted.len()]);
        Ok(GroupMatching {
            wanted,
            made,
            partners,
            full_partners,
            taken,
            free,
            is_reached,
            is_seeking,
            steps,
        })
    }

    /// Returns the index of the expected call for each actual one.
    pub(super) fn assign(mut self) -> Result<Vec<Option<usize>>, TooManyDifferentCalls> {
        for group in 0..self.wanted.len() {
            let mut open = self.wanted[group].len();
            while open > 0 {
                match self.take_calls(group, open)? {
                    0 => break,
                    taken => open -= taken,
                }
            }
        }
        let mut pairs = vec![None; self.made.iter().map(Vec::len).sum()];
        let mut next_wanted: Vec<_> = self.wanted.iter().map(|calls| calls.iter()).collect();
        for (calls, taken) in self.made.iter().zip(&self.taken) {
            let takers = taken.iter().flat_map(|(group, count)| std::iter::repeat_n(*group, *count));
            for (call, group) in calls.iter().zip(takers) {
                pairs[*call] = next_wanted[group].next().copied();
            }
        }
        Ok(pairs)
    }

    /// Finds calls for up to `open` expected calls of a group, and reassigns those of other groups if needed. Returns their number.
    fn take_calls(&mut self, group: usize, open: usize) -> Result<usize, TooManyDifferentCalls> {
        let mut seekers = vec![GroupSeeker { group, gives: None }];
        let mut reached = Vec::new();
        let mut next = 0;
        self.is_seeking[group] = true;
        while let Some(&GroupSeeker { group, .. }) = seekers.get(next) {
            if self.steps > MAX_STEPS {
                return Err(TooManyDifferentCalls);
            }
            if let Some(free) = self.free_partner(group) {
                reached.into_iter().for_each(|made: usize| self.is_reached[made] = false);
                seekers.iter().for_each(|seeker| self.is_seeking[seeker.group] = false);
                return Ok(self.reassign(&seekers, next, free, open));
            }
            self.steps += self.partners[group].len();
            for made in &self.partners[group] {
                if !std::mem::replace(&mut self.is_reached[*made], true) {
                    reached.push(*made);
                    for taker in self.taken[*made].keys() {
                        if !std::mem::replace(&mut self.is_seeking[*taker], true) {
                            seekers.push(GroupSeeker { group: *taker, gives: Some((*made, next)) });
                        }
                    }
                }
            }
            next += 1;
        }
        // Groups that a search without success has reached make no room for later ones either: they stay reached.
        Ok(0)
    }

    /// Returns the first partner with free calls. Calls that are taken are never free again.
    fn free_partner(&mut self, group: usize) -> Option<usize> {
        let partners = &self.partners[group][self.full_partners[group]..];
        let full = partners.iter().take_while(|made| self.free[**made] == 0).count();
        self.steps += full + 1;
        self.full_partners[group] += full;
        partners.get(full).copied()
    }

    /// Gives free calls to a seeker, its present calls to the seeker that would take those, and so on.
    fn reassign(&mut self, seekers: &[GroupSeeker], last: usize, free: usize, open: usize) -> usize {
        let mut count = open.min(self.free[free]);
        let mut at = last;
        while let GroupSeeker { group, gives: Some((made, taker)) } = seekers[at] {
            count = count.min(self.taken[made][&group]);
            at = taker;
        }
        self.free[free] -= count;
        let (mut at, mut gets) = (last, free);
        loop {
            let GroupSeeker { group, gives } = seekers[at];
            *self.taken[gets].entry(group).or_default() += count;
            let Some((made, taker)) = gives else { return count };
            if let Some(left) = self.taken[made].get_mut(&group) {
                *left -= count;
                if *left == 0 {
                    self.taken[made].remove(&group);
                }
            }
            (at, gets) = (taker, made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign<K: Hash + Eq + Clone>(
        wanted: &[K],
        made: &[K],
        fits: impl Fn(&K, &K) -> bool,
    ) -> Result<Vec<Option<usize>>, TooManyDifferentCalls> {
        let (_, wanted_groups) = group_calls(wanted.iter().cloned());
        let (_, made_groups) = group_calls(made.iter().cloned());
        let all: Vec<usize> = (0..made_groups.len()).collect();
        let fits = |expected: usize, at: usize| fits(&wanted[expected], &made[at]);
        GroupMatching::new(wanted_groups, made_groups, |_| &all, fits)?.assign()
    }

    #[test]
    fn reassigns_earlier_matches() {
        // Expected call 0 matches both calls, expected call 1 only the first one.
        let fits = |expected: &usize, at: &usize| *expected == 0 || *at == 0;
        assert_eq!(assign(&[0, 1], &[0, 1], fits), Ok(vec![Some(1), Some(0)]));
        assert_eq!(assign(&[0, 0, 1], &[0, 1, 0], fits), Ok(vec![Some(0), Some(1), Some(2)]));
        assert_eq!(assign(&[0, 1, 2], &[0, 1], |_, _| true).unwrap().iter().flatten().count(), 2);
        assert_eq!(assign(&[0], &[], |_, _| true), Ok(vec![]));
    }

    #[test]
    fn many_equal_calls_are_assigned_quickly() {
        for (wanted, made) in [(200_000, 200_000), (300_000, 200_000), (200_000, 300_000)] {
            let pairs = assign(&vec![0; wanted], &vec![0; made], |_, _| true).unwrap();
            assert_eq!(pairs.iter().flatten().count(), wanted.min(made));
        }
    }

    #[test]
    fn one_call_too_many_is_found_quickly() {
        let (_, wanted) = group_calls(std::iter::repeat_n("any", 6_001));
        let (_, made) = group_calls(0..6_000);
        let all: Vec<usize> = (0..6_000).collect();
        let pairs = GroupMatching::new(wanted, made, |_| &all, |_, _| true).unwrap().assign().unwrap();
        assert!(pairs.iter().all(Option::is_some));
    }

    #[test]
    fn calls_that_match_any_give_way_to_others() {
        // The first half of the expected calls matches any call, each other one a single call.
        let count = 6_000;
        let wanted: Vec<usize> =
            (0..count).map(|at| if at < count / 2 { count } else { at - count / 2 }).collect();
        let made: Vec<usize> = (0..count).collect();
        let (_, wanted_groups) = group_calls(wanted.iter());
        let (_, made_groups) = group_calls(made.iter());
        let single: Vec<[usize; 1]> = made.iter().map(|at| [*at]).collect();
        let candidates = |group: usize| if group == 0 { made.as_slice() } else { &single[group - 1] };
        let pairs = GroupMatching::new(wanted_groups, made_groups, candidates, |_, _| true).unwrap().assign();
        assert_eq!(pairs.unwrap().iter().flatten().count(), count);
    }

    #[test]
    fn long_chains_of_reassignments_need_no_stack() {
        // Expected call n takes call n, or the one after it; the last one has only the call of the first.
        let count = 3_000;
        let fits = |expected: &usize, at: &usize| match *expected == count - 1 {
            true => *at == 0,
            false => at == expected || *at == expected + 1,
        };
        let calls: Vec<usize> = (0..count).collect();
        let pairs = assign(&calls, &calls, fits).unwrap();
        assert_eq!(pairs[0], Some(count - 1));
        assert!((1..count).all(|at| pairs[at] == Some(at - 1)));
    }

    #[test]
    fn assigns_as_many_calls_as_a_search_without_groups() {
        // Numbers below 4, so that there are equal ones; a bit of `mask` decides whether two of them match.
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..500 {
            let mask = random(1 << 16);
            let fits = |expected: &u64, at: &u64| mask >> (expected * 4 + at) & 1 == 1;
            let mut list = || -> Vec<u64> { (0..random(8)).map(|_| random(4)).collect() };
            let (wanted, made) = (list(), list());
            let pairs = assign(&wanted, &made, fits).unwrap();
            assert!(
                pairs.iter().enumerate().all(|(at, pair)| pair.is_none_or(|to| fits(&wanted[to], &made[at])))
            );
            let mut taken: Vec<usize> = pairs.iter().flatten().copied().collect();
            let found = taken.len();
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(taken.len(), found, "an expected call has two calls");
            assert_eq!(found, largest_assignment(&wanted, &made, &fits), "{wanted:?} {made:?} {mask:b}");
        }
    }

    fn largest_assignment(wanted: &[u64], made: &[u64], fits: &impl Fn(&u64, &u64) -> bool) -> usize {
        let Some((first, others)) = wanted.split_first() else { return 0 };
        let with_first = (0..made.len()).filter(|at| fits(first, &made[*at])).map(|at| {
            let mut left = made.to_vec();
            left.remove(at);
            1 + largest_assignment(others, &left, fits)
        });
        with_first.max().unwrap_or(0).max(largest_assignment(others, made, fits))
    }

    #[test]
    fn too_many_different_calls_are_an_error() {
        let calls: Vec<usize> = (0..4_000).collect();
        assert_eq!(assign(&calls, &calls, |_, _| false), Err(TooManyDifferentCalls));
    }
}

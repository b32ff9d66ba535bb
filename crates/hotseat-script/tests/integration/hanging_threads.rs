//! Limit of hanging threads.

use std::sync::mpsc;
use std::time::Duration;

use hotseat_script::{ScriptErrorKind, thread};

use crate::common::lock_threads;

#[test]
fn hanging_threads_are_abandoned_up_to_a_limit() {
    let _threads = lock_threads();
    let short = Duration::from_millis(1);
    let hanging: Vec<_> = (0..thread::MAX_ABANDONED_THREADS)
        .map(|_| {
            std::thread::spawn(move || {
                let (release, held) = mpsc::channel::<()>();
                let error = thread::run(short, move |stop| {
                    let _ = held.recv();
                    stop.is_stopped()
                })
                .unwrap_err();
                assert_eq!(error.kind, ScriptErrorKind::TimeLimit);
                assert!(error.message.contains("its thread was abandoned"), "{error}");
                release
            })
        })
        .collect();
    let releases: Vec<_> = hanging.into_iter().map(|thread| thread.join().unwrap()).collect();

    let refused = thread::run(short, |_| 1).unwrap_err();
    assert!(refused.message.contains("8 scripts hang"), "{refused}");

    drop(releases);
    let began = std::time::Instant::now();
    while thread::run(Duration::from_secs(5), |_| 1).is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "threads that ended are no longer counted");
        std::thread::yield_now();
    }
}

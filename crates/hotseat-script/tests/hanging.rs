//! Threads that hang are few. They are counted for the whole process, so this has one to itself.

use std::sync::mpsc;
use std::time::Duration;

use hotseat_script::{ErrorKind, thread};

#[test]
fn threads_that_do_not_come_back_are_left_and_when_they_are_many_no_more_are_started() {
    let short = Duration::from_millis(1);
    let hanging: Vec<_> = (0..thread::MOST_LEFT)
        .map(|_| {
            std::thread::spawn(move || {
                let (release, held) = mpsc::channel::<()>();
                let error = thread::run(short, move |stop| {
                    let _ = held.recv();
                    stop.is_stopped()
                })
                .unwrap_err();
                assert_eq!(error.kind, ErrorKind::TimeLimit);
                assert!(error.message.contains("its thread is left behind"), "{error}");
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

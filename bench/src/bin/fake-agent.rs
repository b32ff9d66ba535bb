//! Runs the fake agent as a process: one thread, on a free port of 127.0.0.1, and prints its address. It ends
//! with its standard input, and so with the driver.

#![allow(clippy::print_stdout)]

use std::io;
use std::net::Ipv4Addr;

use tokio::net::TcpListener;

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("http://{}/", listener.local_addr()?);
        tokio::select! {
            served = hotseat_bench::fake_agent::serve(listener) => served,
            ended = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())) => ended?.map(drop),
        }
    })
}

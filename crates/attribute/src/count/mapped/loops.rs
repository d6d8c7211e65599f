//! Loops under a map.

use memlode_replay::Events;
use memlode_trace::event::{Access, Stride};

use super::{Mapped, is_on_stack};
use crate::count::engine::{NO_PLACE, TakesFragments};
use crate::count::map::MappedPiece;
use crate::count::profiler::{Profiler, Stream};
use crate::count::route::Route;

/// Accesses that are written out at a time.
const UNROLLED: usize = 256;

impl Mapped<'_> {
    /// Returns where a stride of a loop goes; `None` if its steps are not constant any more.
    pub(super) fn stride<E: TakesFragments>(
        &mut self,
        profiler: &Profiler<E>,
        stream: &mut Stream,
        stride: &Stride,
        iterations: u64,
    ) -> Option<Stride> {
        if is_on_stack(profiler, stride.access.site) {
            let Some(rest) = &mut self.rest else { return Some(*stride) };
            let address = rest.stack(stream.origin.process, stream.origin.thread, stride.access.address);
            return Some(Stride { access: Access { address, ..stride.access }, ..*stride });
        }
        let Access { address, bytes, .. } = stride.access;
        let block = self.block_at(profiler, stream, address)?;
        let last = stride.access_in(iterations - 1).address;
        let is_inside = |address: u64| {
            let offset = address.checked_sub(block.base);
            offset.is_some_and(|offset| offset + u64::from(bytes) <= block.bytes)
        };
        if !is_inside(address) || !is_inside(last) {
            return None;
        }
        if !block.moves {
            return Some(*stride);
        }
        let object = block.named(profiler, stream.origin);
        let offset = address - block.base;
        let step = match stride.step {
            0 => 0,
            step => self.map.stride(&object, offset, bytes, step, last - block.base)?,
        };
        self.map.map(&object, offset, bytes, &mut self.answered);
        let mut answered = self.answered.drain(..);
        match (answered.next(), answered.next()) {
            (Some(MappedPiece { address, bytes, is_link: false, .. }), None) => {
                Some(Stride { access: Access { address, bytes, ..stride.access }, step, ..*stride })
            }
            _ => None,
        }
    }

    /// Simulates all iterations of a loop, access by access.
    pub(super) fn unroll<E: TakesFragments>(
        &mut self,
        profiler: &mut Profiler<E>,
        stream: &mut Stream,
        iterations: u64,
        strides: &[Stride],
    ) {
        let mut unrolled = std::mem::take(&mut self.unrolled);
        for iteration in 0..iterations {
            unrolled.extend(strides.iter().map(|stride| stride.access_in(iteration)));
            if unrolled.len() >= UNROLLED || iteration + 1 == iterations {
                let events = Events { accesses: &unrolled, marks: &[], before: NO_PLACE };
                self.events(profiler, stream, events);
                unrolled.clear();
            }
        }
        self.unrolled = unrolled;
    }

    /// Looks at how the sites of a loop walk where their data lie now.
    pub(super) fn look_at_loop<E: TakesFragments>(
        &mut self,
        profiler: &Profiler<E>,
        stream: &mut Stream,
        (iterations, may_stay): (u64, bool),
        strides: &[Stride],
    ) {
        let Some(mut walks) = self.looked_at.take() else { return };
        for stride in strides {
            let there = may_stay.then(|| self.stride(profiler, stream, stride, iterations)).flatten();
            if let Some(there) = there {
                walks.stride(&there, iterations);
                continue;
            }
            let block = self.block_at(profiler, stream, stride.access.address);
            if !block.is_some_and(|block| block.moves) {
                walks.stride(stride, iterations);
                continue;
            }
            for iteration in 0..iterations {
                let access = stride.access_in(iteration);
                self.resolve(profiler, stream, &access);
                for piece in self.pieces.iter().filter(|piece| !piece.is_link) {
                    walks.access(&Access { address: piece.address, bytes: piece.bytes, ..access });
                }
            }
        }
        self.looked_at = Some(walks);
    }
}

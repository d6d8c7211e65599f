struct Item {
    key: i64,
    _rest: [u8; 56],
}

#[inline(never)]
fn sum(items: &[Item]) -> i64 {
    let mut all = 0;
    for at in 0..items.len() {
        all += items[at * 7919 % items.len()].key; // <-- hot
    }
    all
}

fn main() {
    let items: Vec<Item> = (0..100_000).map(|key| Item { key, _rest: [0; 56] }).collect();
    println!("{}", (0..3).map(|_| sum(&items)).sum::<i64>());
}

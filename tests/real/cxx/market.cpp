// A market of orders: standard containers, virtual calls, exceptions, templates and threads, as C++
// programs use them. Prints the same on every run.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

class Random {
public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}

  std::uint32_t below(std::uint32_t bound) {
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(seed_ >> 33) % bound;
  }

private:
  std::uint64_t seed_;
};

struct Order {
  int id;
  int trader;
  std::int64_t price;
  int amount;
};

// What a trade costs; the kinds are reached through the base.
class Fee {
public:
  virtual ~Fee() = default;
  virtual std::int64_t of(const Order &order) const = 0;
};

class FlatFee : public Fee {
public:
  explicit FlatFee(std::int64_t fee) : fee_(fee) {}
  std::int64_t of(const Order &) const override { return fee_; }

private:
  std::int64_t fee_;
};

class ShareFee : public Fee {
public:
  explicit ShareFee(int per_mille) : per_mille_(per_mille) {}
  std::int64_t of(const Order &order) const override {
    return order.price * order.amount * per_mille_ / 1000;
  }

private:
  int per_mille_;
};

class SteppedFee final : public Fee {
public:
  std::int64_t of(const Order &order) const override {
    auto step = steps_.upper_bound(order.amount);
    return step == steps_.begin() ? 0 : std::prev(step)->second;
  }

private:
  std::map<int, std::int64_t> steps_{{1, 50}, {10, 40}, {50, 25}, {90, 10}};
};

class Refused : public std::runtime_error {
public:
  Refused(const std::string &why, int trader) : std::runtime_error(why), trader(trader) {}
  int trader;
};

struct Account {
  std::string name;
  std::int64_t money = 500000;
  std::vector<int> trades;
};

class Market {
public:
  explicit Market(std::uint64_t seed) : random_(seed) {
    fees_.push_back(std::make_unique<FlatFee>(30));
    fees_.push_back(std::make_unique<ShareFee>(2));
    fees_.push_back(std::make_unique<SteppedFee>());
    for (int i = 0; i < 200; i++)
      accounts_[i].name = "trader number " + std::to_string(i);
  }

  void run(int orders) {
    for (int i = 0; i < orders; i++) {
      Order order{i, static_cast<int>(random_.below(210)), 90 + random_.below(21),
                  1 + static_cast<int>(random_.below(100))};
      try {
        place(order);
      } catch (const Refused &refused) {
        refusals_[refused.what()]++;
      }
    }
  }

  std::string summary() const {
    std::int64_t money = 0;
    std::size_t trades = 0;
    for (const auto &[id, account] : accounts_) {
      money += account.money;
      trades += account.trades.size();
    }
    std::string text = "money " + std::to_string(money) + ", trades " + std::to_string(trades);
    for (const auto &[why, count] : refusals_)
      text += ", " + why + " " + std::to_string(count);
    return text + ", open " + std::to_string(book_.size());
  }

private:
  void place(const Order &order) {
    auto found = accounts_.find(order.trader);
    if (found == accounts_.end())
      throw Refused("unknown", order.trader);
    Account &account = found->second;
    const std::int64_t fee = fees_[static_cast<std::size_t>(order.id) % fees_.size()]->of(order);
    if (account.money < fee + order.price * order.amount)
      throw Refused("poor", order.trader);
    auto match = book_.lower_bound(order.price);
    if (match != book_.end() && match->second.trader != order.trader) {
      account.money -= fee + match->second.price * order.amount;
      accounts_.at(match->second.trader).money += match->second.price * order.amount;
      account.trades.push_back(order.id);
      book_.erase(match);
    } else {
      book_.emplace(order.price, order);
    }
  }

  Random random_;
  std::vector<std::unique_ptr<Fee>> fees_;
  std::unordered_map<int, Account> accounts_;
  std::multimap<std::int64_t, Order> book_;
  std::map<std::string, int> refusals_;
};

template <typename T> T spread(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values.back() - values.front() + std::accumulate(values.begin(), values.end(), T{}) % 1000;
}

} // namespace

int main() {
  std::vector<std::string> summaries(4);
  std::vector<std::thread> threads;
  threads.reserve(summaries.size());
  std::atomic<int> finished{0};
  std::mutex mutex;
  std::uint64_t shared = 0;
  for (std::size_t t = 0; t < summaries.size(); t++)
    threads.emplace_back([&, t] {
      Market market(t + 1);
      market.run(100000);
      summaries[t] = market.summary();
      std::lock_guard<std::mutex> lock(mutex);
      shared += std::hash<std::string>{}(summaries[t]);
      finished++;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &summary : summaries)
    std::printf("%s\n", summary.c_str());
  Random random(99);
  std::vector<std::int64_t> values(50000);
  std::generate(values.begin(), values.end(), [&] { return random.below(1000000); });
  std::printf("%d finished, %llu, spread %lld\n", finished.load(),
              static_cast<unsigned long long>(shared % 1000), static_cast<long long>(spread(values)));
}

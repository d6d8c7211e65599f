// What both programs simulate: drops that fall into a small basin of a large, mostly empty grid.
#ifndef SCENE_H
#define SCENE_H

#include <cstddef>
#include <cstdint>

constexpr int kSide = 36; // cells along each edge of the cube
constexpr int kCells = kSide * kSide * kSide;
constexpr int kPerCell = 16;
constexpr int kOverflowCells = 256; // more than any step needs
constexpr int kSteps = 100;
constexpr int kDropsPerStep = 1500;

struct Drop {
  float x, y, z; // in cells
  float speed;
};

class Rain {
public:
  // Half the drops of a step crowd into one column, so that cells there overflow.
  Drop next() {
    const float spread = number() < 0.5f ? 1.0f : 8.0f;
    return {spread * number(), spread * number(), 4.0f * number(), number()};
  }

private:
  float number() {
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(seed_ >> 40) * (1.0f / 16777216.0f);
  }

  std::uint64_t seed_ = 7;
};

inline int cell_of(const Drop &drop) {
  return (static_cast<int>(drop.z) * kSide + static_cast<int>(drop.y)) * kSide + static_cast<int>(drop.x);
}

#endif

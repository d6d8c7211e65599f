-- A mix of what Lua programs do: calls, tables as arrays and as hashes, closures, strings, garbage,
-- coroutines, metatables, errors. Prints figures that do not depend on addresses. Argument: rounds.
local rounds = tonumber(arg and arg[1]) or 1

local seed = 12345
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n + 1
end

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

local function sorted(n)
  local t = {}
  for i = 1, n do t[i] = random(1000000) end
  table.sort(t)
  for i = 2, n do assert(t[i - 1] <= t[i]) end
  return t[1] + t[n // 2] + t[n]
end

local function words(n)
  local count, distinct = {}, 0
  for _ = 1, n do
    local word = "w" .. random(2000)
    if not count[word] then distinct = distinct + 1 end
    count[word] = (count[word] or 0) + 1
  end
  local keys = {}
  for word in pairs(count) do keys[#keys + 1] = word end
  table.sort(keys, function(a, b)
    if count[a] ~= count[b] then return count[a] > count[b] end
    return a < b
  end)
  return distinct .. ":" .. keys[1] .. "=" .. count[keys[1]]
end

local function lists(n)
  local list
  for i = 1, n do list = {value = i, next = i % 100 ~= 0 and list or nil} end
  local sum = 0
  while list do sum, list = sum + list.value, list.next end
  return sum
end

local function strings(n)
  local parts = {}
  for i = 1, n do parts[i] = string.format("%05d-%s", random(99999), string.rep("ab", i % 7)) end
  local text = table.concat(parts, ",")
  local digits = 0
  for run in text:gmatch("%d+") do digits = digits + #run end
  return #text .. "/" .. digits .. "/" .. #text:gsub("ab", "z"):upper()
end

local Account = {}
Account.__index = Account
Account.__add = function(a, b) return setmetatable({balance = a.balance + b.balance}, Account) end
function Account:pay(n)
  if n > self.balance then error({short = n - self.balance}) end
  self.balance = self.balance - n
end

local function accounts(n)
  local total, short = setmetatable({balance = 0}, Account), 0
  for _ = 1, n do
    local account = setmetatable({balance = random(100)}, Account)
    local ok, problem = pcall(account.pay, account, random(120))
    if not ok then short = short + problem.short end
    total = total + account
  end
  return total.balance .. "-" .. short
end

local function generated(n)
  local next_square = coroutine.wrap(function() for i = 1, n do coroutine.yield(i * i) end end)
  local sum = 0
  for _ = 1, n do sum = sum + next_square() end
  return sum
end

for round = 1, rounds do
  print(round, fib(22), sorted(20000), words(20000), lists(30000), strings(4000), accounts(15000), generated(8000))
  collectgarbage()
end

"""Deep Q-learning on a windy corridor, with a replay memory and a target network.

Each action moves one cell left or right, but one time in ten the wind decides. The right end
pays 1, the left end 0.2, and each step costs a little.

Expected: mean return > 0.60 (a random walk gets about 0.2).
"""

import argparse
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn

Transition = namedtuple("Transition", "state action reward next_state done")
CELLS = 11
GAMMA = 0.95


class Corridor:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.position, self.time = CELLS // 2, 0
        return self.state()

    def state(self):
        return [2 * self.position / (CELLS - 1) - 1, 1.0 if self.position % 2 else -1.0]

    def step(self, action):
        if self.rng.random() < 0.1:
            action = self.rng.randrange(2)
        self.position += 1 if action == 1 else -1
        self.time += 1
        if self.position <= 0:
            return self.state(), 0.2, True
        if self.position >= CELLS - 1:
            return self.state(), 1.0, True
        return self.state(), -0.01, self.time >= 60


class ReplayMemory:
    def __init__(self, capacity, rng):
        self.memory, self.rng = deque(maxlen=capacity), rng

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        batch = Transition(*zip(*self.rng.sample(self.memory, n), strict=True))
        return [torch.tensor(column) for column in batch]


def make_q(hidden):
    return nn.Sequential(
        nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
    )


def act(q, state):
    with torch.no_grad():
        return int(q(torch.tensor([state])).argmax())


def play(q, env, episodes=50):
    total = 0.0
    for _ in range(episodes):
        state, done = env.reset(), False
        while not done:
            state, reward, done = env.step(act(q, state))
            total += reward
    return total / episodes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--hidden", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)

    env, memory = Corridor(rng), ReplayMemory(2000, rng)
    policy_net, target_net = make_q(args.hidden), make_q(args.hidden)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = torch.optim.Adam(policy_net.parameters(), lr=2e-3)
    criterion = nn.SmoothL1Loss()
    state = env.reset()
    for step in range(args.steps):
        epsilon = max(0.1, 1 - step / 500)
        action = rng.randrange(2) if rng.random() < epsilon else act(policy_net, state)
        next_state, reward, done = env.step(action)
        timeout = env.time >= 60
        memory.push(state, action, reward, next_state, float(done and not timeout))
        state = env.reset() if done else next_state
        if len(memory.memory) < 200 or step % 2:
            continue

        states, actions, rewards, next_states, dones = memory.sample(64)
        q = policy_net(states).gather(1, actions[:, None]).squeeze(1)
        with torch.no_grad():
            best = target_net(next_states).amax(1)
        loss = criterion(q, rewards + GAMMA * (1 - dones) * best)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        if step % 50 == 0:
            target_net.load_state_dict(policy_net.state_dict())
        if step % 300 == 0:
            print(f"step {step} loss {loss.item():.4f} epsilon {epsilon:.2f}")
    print(f"mean return {play(policy_net, env):.4f}")


if __name__ == "__main__":
    main()

"""The sentences of Track A's page, between which `track_a_page.py` sets the tables, and its commands."""

TEXT = """\
# Does Track A learn what a published DQN learns in as many frames?

The DQN of Mnih et al. (2015) on {games}, with the settings of the paper's table
([`pong_trackA`](../../runs/pong_trackA.toml)) and with those of DeepMind's Lua code where it differs
([`pong_trackA_lua`](../../runs/pong_trackA_lua.toml)): an evaluation of 30 games after each million frames,
next to the three seeds of nnabla-rl's DQN, their mean with the lowest and the highest in brackets. On track
is a score between these two; **just** below or above, one that is no further outside than they are apart.
A fourth seed of the published code would be below the other three at one point in four, and above them as
often. After 1M frames a verdict says little: random play is on track, which scores about −20.4 on Pong and
1.3 on Breakout here, and −20.7 and 1.7 in the published table. ‡: frames are resized otherwise than in
nnabla-rl, so that there is no verdict. A dash: the run has not come so far, or was not to.{cut}
Seeds 2 are evaluated with nnabla-rl's cap of 400,000 frames, the other runs with Track A's of 18,000.

**With the paper's settings Pong is below the published seeds at 2M and 3M frames**; Breakout's run ends at
2M, where its 1.2, of a standard error of 0.3, is at the lowest seed's 1.3. **With four settings taken from
nnabla-rl's code the scores come near its own, and are rather lower**:
{tally}.
Successive scores of a run are not independent. On Breakout each score from 2M on, but that of seed 2 at 3M,
is below the mean of the published seeds; at 10M both seeds are just below the lowest of them. Pong's at 10M,
of seed 1, is between the lowest and the highest; but the cap ended 5 of the 150 games of which this is the
mean, so that it is no verdict. Pong's seed 2 is among the published seeds at each million from 2M to 9M but
4M. Of these settings larger initial weights made the loss fall a million frames earlier on Pong.

{table}

{progress}

![Evaluations and training games by frames, with the published seeds]({plot})

## What was tried on Pong

Settings of nnabla-rl's code, each added to those before, **in one run with one seed each**, in two with all
four, so that a difference between two runs may be one of chance. The first three differ from Track A's.

1. **Units, with the settings of the Lua code.** By the paper's table ε falls to 0.1 over a million frames,
   and the target network is copied every 10,000 updates, which are 160,000 frames: 11 times in the first two
   million. The Lua code counts agent steps, and so does nnabla-rl: ε falls over four million frames, and the
   target network is copied every 2,500 updates or 40,000 frames: 45 times. The spec also resizes frames as
   the Lua code does, bilinearly.
2. **Larger initial weights**, of variance 2 / fan-in (He et al. 2015), and biases of 0. Those of Track A are
   U(±1/√fan-in), as in the Lua code, a sixth of that variance; the paper names none. nnabla-rl's are normally
   distributed, those of `he_uniform` uniformly, and in the last layer with half that variance.
3. **Doubled gradients**: the squared error without the factor ½, whose gradient is clipped to ±1
   ([`doubled_loss`](track_a/doubled_loss/doubled_loss.py)).
4. **Frames resized by area**, as in nnabla-rl and in `pong_trackA`: this takes back the bilinear resizing
   of 1.

Means over the {interval} frames before, of the minibatches' loss, of the gradient's norm, and of the returns
of training games, whose ε is the same in all runs but the first:

{updates}

With doubled gradients the loss is another: an unpredicted reward of ±1 costs 0.75, not 0.5.

- **With all four, most scores on Pong lie between the published seeds**, and the others below them. From 11M
  on some games last longer than 5 minutes of play, at which Track A's cap ends them.
  Evaluations vary: −17.9 at 2M and −18.8 at 3M have standard errors of 0.6 and 0.3. One run with one seed
  does not say how much of that each setting did. In the training games before 2M, the mean rises with the
  larger weights and again with doubled gradients, but not with the resizing (standard errors are 0.1 to 0.25
  within a run), though the evaluation is two points higher with it.
- **The loss leaves its plateau a million frames earlier with the larger weights.** While a network predicts
  no reward at all, its loss stays near 0.011 (with doubled gradients it would be near 0.017, by calculation).
  With the smaller weights it leaves this value between 1 and 1.6 million frames, with the larger ones between
  0.2 and 0.6 million, in every run.
- **On Breakout the four together** score 2.5 and 2.9 at 2M with seeds 1 and 2 (standard errors 0.1 and 0.2),
  clearly above random play, where the run with the paper's settings scores 1.2, and 25.2 and 27.9 at 5M,
  where published seeds score 24.4 to 35.6. Which of the four matter there was not tried.
- **From 8M to 10M Breakout's score hardly rises with seed 1 and in one of the published runs**: here it is
  65.8, 72.9 and 61.9, and then 106.3 at 11M; there, with seed 100, 66.8, 65.2, 56.6 and 127.9. So a plateau
  there is no peculiarity of this program; seed 2 has none: 50.8, 76.7, 85.1, 93.8 and 124.2 from 8M to 12M.
  With seed 1 it ends when games of more than 100 points become frequent: of the
  training games between 7M and 10M they are 14 in 606, and between 10M and 12M 71 in 392. One game, the best
  of ten that `dqn record --best-of 10` played with the weights of 12M, goes from 122 to 245 points in its
  last tenth, with the ball behind the wall; its recording is not kept.
- **Breakout's score is lower, too**: at 4M, 6M, 7M and 8M, and in the mean from 8M to 12M, which is the score
  at 10M, both seeds are below the lowest published one. Why is not known; ε falls 200,000 frames later here
  than in nnabla-rl.
- **A small loss is no better score.** At 2M it is smallest with the paper's settings, but this policy, like
  that of the Lua code's settings, lost each of 30 games by 0 to 21, which is worse than random play. The
  losses are of different games: ε and the target network's period differ.
- **Why is not known.** With `he_uniform` the outputs of a new network are larger by about 6²·√3 = 62 times
  (without biases; nnabla-rl's by 6^2.5 = 88), and the gradients of its hidden layers by about 25. The
  optimizer divides a gradient by √(its variance + 0.01), which hardly depends on it as long as it is below
  0.1, so that small gradients take small steps. Whether doubled gradients end the plateau of the smaller
  weights earlier was not tried.
- **Not tried**, though it differs: nnabla-rl evaluates in 125,000 agent steps, of which the last, unfinished
  game does not count; its ε falls from the first step on, not from the end of the prefill; the first stack of
  a game, and of each further life, repeats its first frame; and an action is repeated for 4 frames though a
  life is lost at one of them.

Track A keeps the weights and the loss of the Lua code. `--set network.init=he_uniform` begins with the larger
weights, and marks the run `A*`.

## How they were measured

{runs}

- **Verdicts are those of `dqn compare`**, which says "below" of what is just below too.
- **The protocols are alike, but for the cap of a game**, the number of games, and what is named above. Both
  play with ε = 0.05, up to 30 no-op frames and no sticky actions. Games of Track A end after 18,000 frames,
  as in its paper, those of nnabla-rl after 400,000, and so do the evaluations of seed 2. There is a verdict
  only where no game reached the cap.
- The mean of 30 games has a standard error of at most 11.6; how much seeds differ, two do not say.
- At 10M the published figure is the mean of the evaluations from 8M to 12M frames. So is ours of a run that
  has come to 12M; that of another is of those from 8M on, which is lower while scores rise, and has no
  verdict.
- **Minutes** are those of the whole run, with its evaluations. Two runs trained at once, or one with two
  threads, next to other work, so they are no speeds.
- Breakout's seed 2 was begun twice: its machine, with an AMD EPYC, was lost after 5.2M frames, and an Intel
  Xeon began it again. All 4,205 training games and five evaluations of these frames are the same (those of
  the first are in commit 1cf49cb5).
- The run with the Lua code's settings was planned for two million frames and has ended; its dashes stay. Its
  last row is a final evaluation, of as many games.

**Not shown:** other games; a second seed with other settings; whether the curves agree later: the paper's
runs have 50 million frames.

Made from [runs.csv](track_a/runs.csv), [games.csv](track_a/games.csv),
[evaluations.csv](track_a/evaluations.csv), [updates.csv](track_a/updates.csv) and the evaluations of
nnabla-rl's seeds, [published.csv](track_a/published.csv), with a clone of its repository, by

```
dqn sweep track_a_10m
dqn sweep track_a_init
pip install docs/results/track_a/doubled_loss
{commands}
python scripts/nnabla_rl_evaluations.py CLONE
python docs/results/keep_track_a.py RUN...
```
"""


LUA = (
    "dqn train pong_trackA_lua --set evaluation.full_period_frames=1M --set evaluation.light_period_frames=1M"
)
HE_DOUBLED = "--set network.init=he_uniform --set learner.loss=doubled"
SEED_2 = (
    f"--set learner.threads=1 {HE_DOUBLED} --set env.resize=area --set evaluation.max_episode_frames=400_000"
)
COMMANDS = f"""\
{LUA} --set training.total_frames=2M --set learner.threads=2 --run-dir outputs/trackA_lua_2m_pong_seed1
{LUA} --set training.total_frames=10M --set learner.threads=1 {HE_DOUBLED} \
--run-dir outputs/trackA_lua_he_doubled_pong_seed1
{LUA} --set training.total_frames=10M --set learner.threads=2 {HE_DOUBLED} --set env.resize=area \
--run-dir outputs/trackA_lua_he_doubled_area_pong_seed1
dqn resume outputs/trackA_lua_he_doubled_area_pong_seed1 --frames 12M
{LUA} --set training.total_frames=12M {SEED_2} --set seed=2 \
--run-dir outputs/trackA_lua_he_doubled_area_pong_seed2
{LUA} --set game=breakout --set training.total_frames=10M --set learner.threads=1 {HE_DOUBLED} \
--set env.resize=area --run-dir outputs/trackA_lua_he_doubled_area_breakout_seed1
dqn resume outputs/trackA_lua_he_doubled_area_breakout_seed1 --frames 12M
{LUA} --set game=breakout --set training.total_frames=12M {SEED_2} --set seed=2 \
--run-dir outputs/trackA_lua_he_doubled_area_breakout_seed2"""
"""The commands of the runs that are in no sweep that comes with the program: none may need a package."""

"""O002, O004, O009, O012, S013, and what O005 says of warmups and plateaus."""

MESSAGES: dict[str, str] = {
    # O002 lr-too-low
    "The learning rate is so low that the weights stay next to where they started.": (
        "學習率低到權重幾乎停留在起點。"
    ),
    "in {steps} steps of {optimizer} none of {weights} weights of {model} can have moved by more "
    "than {farthest:.1e} of its size (threshold {threshold:g}); a step changes them by "
    "{ratio:.1e}": (
        "在 {optimizer} 的 {steps} 步中，{model} 的 {weights} 個權重沒有一個能移動超過其大小的 "
        "{farthest:.1e}（門檻 {threshold:g}）；一步只改變 {ratio:.1e}"
    ),
    "The learning rate is too low by orders of magnitude.": "學習率低了好幾個數量級。",
    'for group in optimizer.param_groups: group["lr"] *= {factor:.0e}': (
        'for group in optimizer.param_groups: group["lr"] *= {factor:.0e}'
    ),
    "a warmup, or a rate that has come down": "暖身，或已經降下來的學習率",
    "weights that were trained before": "先前訓練過的權重",
    "a loss that has fallen": "已經下降的損失",
    # O004 step-ineffective
    "The optimizer steps, and every weight stays exactly as it was.": (
        "最佳化器執行了 step，每個權重卻完全不變。"
    ),
    "since step {since} no step of {optimizer} has changed any of the {count} parameters of "
    "{model} that it is to train, though backward leaves gradients of up to {gradient:.2g} RMS": (
        "自第 {since} 步起，{optimizer} 沒有任何一步改變 {model} 中它該訓練的 {count} 個參數，"
        "而 backward 留下的梯度 RMS 高達 {gradient:.2g}"
    ),
    "At the moment of the step no parameter has a gradient: they are cleared after backward, or "
    "the step comes before it.": (
        "執行 step 的當下沒有任何參數有梯度：梯度在 backward 之後被清除，或 step 在 backward 之前。"
    ),
    "optimizer.zero_grad(); loss.backward(); optimizer.step()  # in this order": (
        "optimizer.zero_grad(); loss.backward(); optimizer.step()  # 依此順序"
    ),
    "The gradients are there, but what they would change is less than the last digit of the "
    "weights, or is undone within the step.": (
        "梯度存在，但它們造成的改變小於權重的最後一位，或在同一步內被還原。"
    ),
    "Raise the learning rate, or keep the weights in float32.": (
        "提高學習率，或以 float32 保存權重。"
    ),
    "a learning rate of 0": "學習率為 0",
    "parameters that are frozen": "被凍結的參數",
    "steps that a GradScaler skipped": "被 GradScaler 略過的步",
    # O009 momentum-stale
    "A training goes on from saved weights, and its optimizer begins anew.": (
        "訓練從儲存的權重繼續，最佳化器卻從頭開始。"
    ),
    "the weights that {optimizer} trains were loaded, and a file that was read holds the state of "
    "such an optimizer, but it was given none": (
        "{optimizer} 所訓練的權重是載入的，讀取的檔案中也有這種最佳化器的狀態，卻沒有載入給它"
    ),
    "{optimizer} goes on with loaded weights, at a loss of {first:.3g} after {before:.3g} before, "
    "without the averages of the {steps:.0f} steps that the one before it had taken": (
        "{optimizer} 以載入的權重繼續訓練，損失為 {first:.3g}（先前為 {before:.3g}），"
        "卻沒有前一個最佳化器在 {steps:.0f} 步中累積的平均值"
    ),
    "Only the model was loaded; the state of the optimizer was left out.": (
        "只載入了模型，遺漏了最佳化器的狀態。"
    ),
    'optimizer.load_state_dict(checkpoint["optimizer"])': (
        'optimizer.load_state_dict(checkpoint["optimizer"])'
    ),
    "another task or learning rate": "另一個任務或學習率",
    # O012 sign-or-objective
    "The training makes large what should be small: a sign is lost, or an objective is turned.": (
        "訓練把該變小的變大：少了一個負號，或目標顛倒了。"
    ),
    "the loss has fallen from {first:.3g} to {last:.3g} and falls ever faster: by {early:.3g} in "
    "the first half of {steps} steps and by {late:.3g} in the second": (
        "損失從 {first:.3g} 降到 {last:.3g}，而且越降越快："
        "在 {steps} 步的前半降了 {early:.3g}，後半降了 {late:.3g}"
    ),
    "The loss has a term without a lower bound: its sign is wrong.": (
        "損失中有一項沒有下界：它的正負號錯了。"
    ),
    "Add what should become small and subtract what should become large.": (
        "該變小的要加，該變大的要減。"
    ),
    "a log-density that nears its bound": "逐漸接近界限的對數密度",
    "two models that play against each other": "互相對抗的兩個模型",
    "a loss function that should be minimized stands in the loss with factor {factor:.3g} and is "
    "maximized: the loss went from {first:.3g} to {last:.3g}": (
        "應該最小化的損失函數在損失中的係數為 {factor:.3g}，而且被最大化："
        "損失從 {first:.3g} 變為 {last:.3g}"
    ),
    "The loss is negated, or the optimizer has `maximize=True`.": (
        "損失被取了負號，或最佳化器設定了 `maximize=True`。"
    ),
    "loss = criterion(output, target)  # without a minus, and without maximize=True": (
        "loss = criterion(output, target)  # 不加負號，也不用 maximize=True"
    ),
    "another loss in the sum that is minimized": "總和中另有被最小化的損失",
    "the loss makes what is drawn less likely the greater `{variable}` is: its factor before the "
    "log-likelihood has a correlation of {correlation:.2f} with it (threshold {threshold:g}; it "
    "should be negative)": (
        "`{variable}` 越大，損失就使所抽樣的結果越不可能：對數似然前的係數與它的相關係數為 "
        "{correlation:.2f}（門檻 {threshold:g}；應為負值）"
    ),
    "The minus of the policy gradient is missing: an optimizer minimizes.": (
        "策略梯度少了負號：最佳化器是在最小化。"
    ),
    "loss = -({variable} * log_prob).mean()": "loss = -({variable} * log_prob).mean()",
    "a factor that is the negative of the reward": "係數是獎勵的負值",
    "the loss of `{judge}` has come down to {own:.1%} of its first value and that of `{judged}`, "
    "which `{judge}` judges by the label {label:g}, to {through:.1%} (threshold {threshold:.0%}): "
    "they do not play against each other": (
        "`{judge}` 的損失降到最初的 {own:.1%}，由 `{judge}` 以標籤 {label:g} 評判的 `{judged}` "
        "也降到 {through:.1%}（門檻 {threshold:.0%}）：兩者並未互相對抗"
    ),
    "The generator is given the label that the judge has for its pictures.": (
        "給生成器的標籤，正是評判者用於生成圖片的標籤。"
    ),
    "loss = criterion(judge(generator(noise)), real_label)": (
        "loss = criterion(judge(generator(noise)), real_label)"
    ),
    "rivals, of which one loses as the other wins": "一方贏則另一方輸的對手",
    # S013 frozen-head
    "A new last layer is frozen, or what is meant to be frozen is trained.": (
        "新的最後一層被凍結，或想凍結的部分仍在訓練。"
    ),
    "an attribute says that `{place}` is frozen, but {parameters} of it are trained": (
        "屬性顯示 `{place}` 已凍結，但其中 {parameters} 仍在訓練"
    ),
    "`requires_grad = False` was set on a module, or was misspelt on a parameter.": (
        "在模組上設定了 `requires_grad = False`，或在參數上拼錯了它。"
    ),
    "{place}.requires_grad_(False)": "{place}.requires_grad_(False)",
    "parameters that no optimizer holds": "沒有最佳化器持有的參數",
    "the last layer `{place}` is frozen, and its weights are as torch draws new ones": (
        "最後一層 `{place}` 被凍結，而其權重與 torch 新抽樣的一樣"
    ),
    "It was frozen along with the rest, before it had learned anything.": (
        "它還沒學到任何東西，就和其餘部分一起被凍結。"
    ),
    "{place}.requires_grad_(True)  # before the optimizer is made": (
        "{place}.requires_grad_(True)  # 在建立最佳化器之前"
    ),
    "a layer that was trained before or loaded": "先前訓練過或載入的層",
    # O005 scheduler-misuse: plateaus and warmups
    "ReduceLROnPlateau takes the {best} number for the best and has been told {count} numbers that "
    "went from {first:.3g} to {last:.3g} as the loss fell; it has cut the learning rate of "
    "{optimizer} from {before:.2g} to {after:.2g}": (
        "ReduceLROnPlateau 把{best}的數值視為最佳，而在損失下降的同時，它得到的 {count} 個數值從 "
        "{first:.3g} 變為 {last:.3g}；它已將 {optimizer} 的學習率從 {before:.2g} 降到 {after:.2g}"
    ),
    "largest": "最大",
    "smallest": "最小",
    "Its `mode` is `{mode}`, and it is told progress as decline.": (
        "它的 `mode` 是 `{mode}`，因此把進步當成退步。"
    ),
    'ReduceLROnPlateau(optimizer, mode="{mode}")': 'ReduceLROnPlateau(optimizer, mode="{mode}")',
    "a validation loss that rises": "上升的驗證損失",
    "an accuracy that falls": "下降的準確率",
    "{optimizer} begins at its full learning rate and moves the weights of {blocks} blocks that "
    "normalize after their sum by {moved:.1%} in the first step; after {step} steps the loss is "
    "still at {left:.0%} of what it was after 10": (
        "{optimizer} 一開始就用完整的學習率，第一步便使 {blocks} 個在相加之後才正規化的區塊的權重"
        "移動 {moved:.1%}；{step} 步之後，損失仍是第 10 步之後的 {left:.0%}"
    ),
    "Near the output such blocks have large gradients at first, and Adam's first steps do not "
    "depend on their size: it needs a warmup.": (
        "這種區塊靠近輸出處起初的梯度很大，而 Adam 最初幾步的大小與梯度無關：需要暖身。"
    ),
    "LambdaLR(optimizer, lambda step: min(1, (step + 1) / 500))  # or norm_first=True": (
        "LambdaLR(optimizer, lambda step: min(1, (step + 1) / 500))  # 或 norm_first=True"
    ),
    "a learning rate that rises": "上升中的學習率",
    "blocks that normalize first": "先正規化的區塊",
    # what is measured for them
    "Greatest factor with which the loss counts a loss function of torch's that has no upper "
    "bound, in the first two steps: negative where all of them are maximized.": (
        "最初兩步中，損失對 torch 沒有上界的損失函數所用的最大係數：若為負，表示全部被最大化。"
    ),
    "Correlation, over the samples of the first two steps, between a variable that is named as a "
    "reward and the factor with which the loss counts the log-likelihood of what was drawn: -1 "
    "where what is rewarded becomes more likely, 1 where less.": (
        "最初兩步的樣本中，名為獎勵的變數與損失中抽樣結果之對數似然的係數之間的相關係數："
        "-1 表示受獎勵的變得更可能，1 表示更不可能。"
    ),
    "Parameters that an attribute of their module, or a misspelt one of their own, says require "
    "no gradient, though they do, have one and are in an optimizer.": (
        "其模組的屬性（或參數自己拼錯的屬性）顯示不需要梯度，"
        "實際上卻需要、有梯度、且在最佳化器中的參數個數。"
    ),
    "Of a frozen last layer: 1 if its weights have the very distribution that torch draws new "
    "ones from.": "被凍結的最後一層：若其權重正是 torch 初始化的分布則為 1。",
    "What a `ReduceLROnPlateau` was told, at its optimizer.": (
        "告訴 `ReduceLROnPlateau` 的數值，記在其最佳化器上。"
    ),
    "1 if its mode is `max`.": "若其模式為 `max` 則為 1。",
    "Steps whose averages were lost: at an optimizer that goes on with loaded weights and was not "
    "given a state, of the one before it with the same settings. 0 where only a file is known to "
    "hold a state for it.": (
        "遺失平均值的步數：最佳化器以載入的權重繼續卻沒有得到狀態時，"
        "為設定相同的前一個最佳化器的步數。若只知道檔案中有它的狀態則為 0。"
    ),
}
"""Traditional Chinese, as it is written in Taiwan."""

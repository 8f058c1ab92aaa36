"""S004, O005, O014, O015, O016, G009, G010: optimizers, schedules, clipping and structure."""

MESSAGES: dict[str, str] = {
    # S004 unregistered-module
    "Layers or tensors of a model are no parameters of it, so that nothing trains them.": (
        "模型用到的層或張量不是它的參數，因此沒有任何東西會訓練它們。"
    ),
    "`{attribute}` of {owner} holds {tensors} with a gradient that are in no optimizer and not "
    "among the parameters of {model}": (
        "{owner} 的 `{attribute}` 含有 {tensors}，它們有梯度，"
        "卻不在任何最佳化器中，也不是 {model} 的參數"
    ),
    "A module does not look for parameters in lists and dicts, nor among plain tensors.": (
        "模組不會在 list 與 dict 中尋找參數，也不會把一般張量當作參數。"
    ),
    "self.{attribute} = nn.ModuleList(self.{attribute})  # nn.Parameter(…) for a tensor": (
        "self.{attribute} = nn.ModuleList(self.{attribute})  # 若是張量則用 nn.Parameter(…)"
    ),
    "what another optimizer holds": "由另一個最佳化器持有的",
    "tensors that are updated by hand": "手動更新的張量",
    "helpers in eval mode": "處於 eval 模式的輔助網路",
    # O014 optimizer-not-stepped
    "An optimizer is made and never steps, so that what it holds is not trained.": (
        "最佳化器建立後從未 step，它所持有的參數因此沒有被訓練。"
    ),
    "the only optimizer of parameters of `{place}` has not stepped in the {steps:.0f} steps since "
    "it was made, though they have gradients (threshold {threshold:.0f})": (
        "唯一持有 `{place}` 參數的最佳化器自建立以來的 {steps:.0f} 步中從未 step，"
        "而這些參數有梯度（門檻 {threshold:.0f}）"
    ),
    "Its `step()` is never called.": "從未呼叫它的 `step()`。",
    "{place}_optimizer.step()": "{place}_optimizer.step()",
    "another optimizer holds the parameters": "另一個最佳化器持有這些參數",
    "an optimizer whose turn comes in every few steps": "每隔幾步才輪到一次的最佳化器",
    # O015 optimizer-recreated
    "An optimizer is made anew within training, again and again, and forgets what it has "
    "averaged.": "訓練中一再重新建立最佳化器，使它忘記先前的平均值。",
    "{kind} was made anew for the same parameters {count:.0f} times, after {life:.1f} steps on "
    "average, though it averages over {memory:.0f}": (
        "{kind} 為相同的參數重新建立了 {count:.0f} 次，平均每 {life:.1f} 步一次，"
        "而它要在 {memory:.0f} 步上取平均"
    ),
    "{kind} is made inside the training loop.": "{kind} 在訓練迴圈內建立。",
    "Move `optimizer = {kind}(…)` out of the loop.": "把 `optimizer = {kind}(…)` 移到迴圈之外。",
    "an optimizer without state": "沒有狀態的最佳化器",
    "other parameters, as of another fold or task": "其他參數，例如另一折或另一個任務的",
    # O005 scheduler-misuse
    "The learning rate is not what the training needs: gone or full too soon, or never there.": (
        "學習率不合訓練所需：太早降到零、太早全開，或從未到位。"
    ),
    "the learning rate of {optimizer} fell from {peak:.3g} to less than {share:.2%} of that in "
    "{before} steps, and has been there for {after} steps since; it is {last:.2g}": (
        "{optimizer} 的學習率在 {before} 步內從 {peak:.3g} 降到不足其 {share:.2%}，"
        "此後維持了 {after} 步；目前是 {last:.2g}"
    ),
    "The scheduler is stepped at each batch though it counts epochs, or was given too few steps.": (
        "排程器以 epoch 計數卻在每個批次 step，或給它的步數太少。"
    ),
    "Call `scheduler.step()` once per epoch, or give it the number of all batches.": (
        "每個 epoch 呼叫一次 `scheduler.step()`，或把全部批次數告訴它。"
    ),
    "a decay to zero at the end": "在結尾降到零",
    "warm restarts": "暖重啟",
    "a rate that was set by hand": "手動設定的學習率",
    # O016 decay-drowns-gradient
    "Weight decay pulls harder at the weights than the loss does, and they shrink to nothing.": (
        "權重衰減對權重的拉力大於損失，權重縮小到幾乎為零。"
    ),
    "a weight decay of {decay:g} pulls {pull:.3g} times as hard at the median of {weights} weights "
    "as the gradient of the first steps (threshold {threshold:g}); it has shrunk to {left:.1%} of "
    "its size": (
        "權重衰減 {decay:g} 對 {weights} 個權重（取中位數）的拉力是最初幾步梯度的 {pull:.3g} 倍"
        "（門檻 {threshold:g}）；權重已縮小到原來的 {left:.1%}"
    ),
    "The weight decay is far too strong for gradients of this size.": (
        "對這樣大小的梯度而言，權重衰減太強。"
    ),
    "{kind}(…, weight_decay={new:.0e})  # in place of {old:g}": (
        "{kind}(…, weight_decay={new:.0e})  # 取代 {old:g}"
    ),
    "gradients that are small late in training": "訓練後期本來就小的梯度",
    # G010 clip-order
    "Gradients are clipped after the step that they were for, or before they are unscaled.": (
        "梯度在該步更新之後才裁剪，或在除去 loss scale 之前就裁剪。"
    ),
    "in {share:.0%} of the calls in the last {steps} measured steps gradients were clipped {what} "
    "(threshold {threshold:.0%})": (
        "最近 {steps} 個量測步的呼叫中，有 {share:.0%} {what}裁剪梯度（門檻 {threshold:.0%}）"
    ),
    "after the step": "在更新之後",
    "while they were multiplied by the loss scale": "在仍乘著 loss scale 時",
    "`clip_grad_norm_` stands behind `optimizer.step()`.": (
        "`clip_grad_norm_` 放在 `optimizer.step()` 之後。"
    ),
    "Clip between `loss.backward()` and `optimizer.step()`.": (
        "在 `loss.backward()` 與 `optimizer.step()` 之間裁剪。"
    ),
    "`scaler.unscale_` is not called before `clip_grad_norm_`.": (
        "在 `clip_grad_norm_` 之前沒有呼叫 `scaler.unscale_`。"
    ),
    "scaler.unscale_(optimizer)  # before clip_grad_norm_": (
        "scaler.unscale_(optimizer)  # 在 clip_grad_norm_ 之前"
    ),
    "a call that asks for the norm": "只為取得範數的呼叫",
    "a bound that was multiplied by the scale": "已乘上 scale 的上限",
    # G009 clip-saturated
    "Nearly every gradient is clipped to a small part of itself, and the weights hardly move.": (
        "幾乎每個梯度都被裁剪到只剩一小部分，權重幾乎不動。"
    ),
    "{above:.0%} of the last gradients exceed the bound of clipping {ratio:g}-fold, in the median "
    "{norm:.3g}-fold, and a step changes the median weight by {typical:.1e} of it": (
        "最近的梯度有 {above:.0%} 超過裁剪上限 {ratio:g} 倍以上，中位數為 {norm:.3g} 倍，"
        "而一步只把權重（取中位數）改變其 {typical:.1e}"
    ),
    "The bound of clipping is far below the norms of the gradients.": (
        "裁剪的上限遠低於梯度的範數。"
    ),
    "nn.utils.clip_grad_norm_(model.parameters(), max_norm={factor:.0f} * max_norm)": (
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm={factor:.0f} * max_norm)"
    ),
    "a learning rate that is chosen for it": "為此選定的學習率",
    "a low learning rate": "低學習率",
    # what is measured for them
    "Steps since an optimizer was made that has not taken one, at the part of a model that only it "
    "holds and whose parameters have gradients.": (
        "最佳化器建立後尚未 step 的步數；位於只由它持有且參數有梯度的模型部分。"
    ),
    "Optimizers that were replaced by another one of the very same parameters, at the part of a "
    "model that has these.": (
        "被另一個持有完全相同參數的最佳化器所取代的個數；記在擁有這些參數的模型部分。"
    ),
    "Mean steps after which that happened.": "平均經過多少步之後發生取代。",
    "Steps over which such an optimizer averages gradients, 1/(1 - m) of its momentum or shortest "
    "average; 0 if it keeps nothing of them.": (
        "這樣的最佳化器對梯度取平均的步數：由動量或最短的平均算得 1/(1 - m)；"
        "若不保留任何梯度資訊則為 0。"
    ),
    "Share of the calls of `clip_grad_norm_` that came when the step was over and no backward had "
    "followed.": "`clip_grad_norm_` 的呼叫中，在更新之後且其後尚無 backward 時發生的比例。",
    "Share of them that found gradients still multiplied by a GradScaler's scale.": (
        "其中梯度仍乘著 GradScaler 之 scale 的比例。"
    ),
    "Norm of the gradient at the last of them, over the largest allowed.": (
        "其中最後一次呼叫時梯度的範數，除以所允許的最大值。"
    ),
    "tensors": "張量",
    "Tensors in an attribute of the model that have a gradient, though they are no parameters of "
    "it and in no optimizer.": ("模型屬性中有梯度、卻既不是其參數也不在任何最佳化器中的張量個數。"),
}
